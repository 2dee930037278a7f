#: stream
# Moves silence or noise; `look` reads the status twice. The tool stays in the foreground, so that Ctrl-C
# reaches it. The kernel notes the time of a status only with -v.
(@look) >"$OUT/@stream_file" & look=$!;
@program -D @device -t raw -f S16_LE -c @channels -r @rate --period-size=@period -s @frames -v @from_to
2>"$OUT/@text_file"; r=$?;
[ $r = 0 ] || cat "$OUT/@text_file"; kill $look 2>/dev/null; wait; exit $r

#: look
sleep @settle_s; cat @folder/hw_params; echo; cat @folder/status; echo;
@before; sleep @window_s; @after; cat @folder/status
