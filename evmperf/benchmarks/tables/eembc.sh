#: enter
# Goes to where a suite of EEMBC's is.
{ cd @folder || {
  echo "no @suite in @folder: install it, or set options.system.@key or options.absent in the board file";
  exit 1;
}; }

#: coremark_pro
@enter && : >"$OUT/began" && make -s TARGET=linux64 XCMD=-c@contexts certify-all >"$OUT/@file" 2>&1 &&
# Earlier runs' logs stay there.
find builds -path "*/cert/*" -name "*.log" -newer "$OUT/began" -exec cat {} + >"$OUT/@log_file"

#: multibench
# The guides write all names in small letters, EEMBC does not.
@enter && {
  e=$(ls builds/*/*/bin/*.exe | grep -i "/@{workload}[.]exe$") ||
  { echo "no @workload.exe below builds/: build MultiBench"; exit 1; };
} && "./$e" -v0 >"$OUT/@file" 2>&1
