"""TI's own test programs for the virtual EVM, compiled from ../shared where that is: a recipe like `virtual`
whose image has them in /opt/ltp/testcases/bin.
"""

import re
import subprocess

import yaml
from evmperf_virtual import recipe
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.steps import BuildSteps

from selftests.support import seeds

VARIANT = "virtual-ti"
SOURCES = seeds.place("real/ltp-ddt") / "testcases/ddt"
_COMPILER = ["aarch64-linux-gnu-gcc", "-O1", "-w", "-fcommon"]
_USER = "utils/user"
_FOLDER = "opt/ltp/testcases/bin"
_NETPERF = """
netperf netlib netsh nettest_bsd nettest_omni net_uuid dscp netcpu_procstat netsys_linux netsec_linux
netfirewall_linux netslot_linux netdrv_ethtool netrt_rtnetlink
"""
_BUILT_WITH = "WANT_INTERVALS WANT_OMNI WANT_MIGRATION USE_PROC_STAT HAVE_DECL_SCHED_SETAFFINITY"
_NOT_ON_LINUX = """
HAVE_AIO HAVE_BINDPROCESSOR HAVE_BIND_TO_CPU_ID HAVE_GETHRTIME HAVE_LIBEXS HAVE_LIBKSTAT HAVE_LIBMACH
HAVE_LIBNSL HAVE_LIBPERFSTAT HAVE_LIBSCTP HAVE_LIBSDP HAVE_LIBSENDFILE HAVE_LIBSOCKET HAVE_LINUX_SOCKET_H
HAVE_MPCTL HAVE_PROCESSOR_BIND HAVE_SCTP_ADAPTATION_LAYER_EVENT HAVE_SOCKADDR_SA_LEN HAVE_SYS_SOCKIO_H
HAVE_NETINET_SCTP_H HAVE_SYS_MMAP_H HAVE_ICSC_EXS
"""


def write_recipe(folder, cache):
    """Write the recipe `virtual-ti` into a folder of recipes, with those it is based on. What is downloaded
    and compiled is kept in `cache`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    for other in recipe.recipes_dir().iterdir():
        (folder / other.name).symlink_to(other)
    own = folder / VARIANT
    programs = own / "overlay" / _FOLDER
    programs.mkdir(parents=True)
    (own / "variant.yaml").write_text(yaml.safe_dump({"base": "virtual"}))
    usual = own / "overlay/usr/bin"  # where netperf replaces Debian's
    usual.mkdir(parents=True)
    for program, place in ((_files(cache), programs), (_audio(cache), programs), (_netperf(cache), usual)):
        (place / program.name).write_bytes(program.read_bytes())
        (place / program.name).chmod(0o755)


def _files(cache):
    """filesystem_tests."""
    program, suite, user = cache / "filesystem_tests", SOURCES / "filesystem_test_suite/src", SOURCES / _USER
    folders = [suite / "testcases", suite / "interface/common", suite / "parser"]
    sources = [file for folder in folders for file in sorted(folder.glob("*.c"))]
    sources += [user / "st_cpu_load.c", user / "st_timer.c"]
    flags = [f"-I{folders[1]}", f"-I{user}"]
    _run([*_COMPILER, "-static", "-o", str(program), *flags, *map(str, sources)], SOURCES)
    return program


def _audio(cache):
    """alsa_perf_tests, linked with the library of the image."""
    suite, program = "alsa_test_suite/src", cache / "alsa_perf_tests"
    headers = cache / "alsa-headers"
    if not headers.exists():
        steps = BuildSteps(cache / "logs", print)
        with DebianArchive(steps, cache / "apt", _suite()) as archive:
            archive.unpack(["libasound2-dev", "libasound2t64"], headers)
    (library,) = headers.glob("usr/lib/*/libasound.so.2.*")
    sources = [str(file) for file in sorted((SOURCES / suite).rglob("*.c"))]
    sources += [str(SOURCES / f"{_USER}/{name}.c") for name in ("st_cpu_load", "st_timer", "st_fileapi")]
    folders = (f"{suite}/interface/common", f"{suite}/parser", _USER)
    flags = [f"-I{SOURCES / folder}" for folder in folders] + [f"-I{headers}/usr/include"]
    link = [str(library), "-lm", "-Wl,--allow-shlib-undefined"]
    _run([*_COMPILER, "-o", str(program), *flags, *sources, *link], SOURCES)
    return program


def _netperf(cache):
    """netperf with rate control, as TI has it; Debian's is built without. Its configure is not used: the
    machine that compiles may lack autoconf.
    """
    source, program = cache / "netperf-source", cache / "netperf"
    if not program.exists():
        steps = BuildSteps(cache / "logs", print)
        with DebianArchive(steps, cache / "apt", _suite(), sources=True) as archive:
            archive.unpack_source("netperf", source)
        known = re.findall(r"#undef (HAVE_\w+)", (source / "config.h.in").read_text())
        lines = [f"#define {name} 1" for name in known if name not in _NOT_ON_LINUX.split()]
        lines += [f"#define {name} 1" for name in _BUILT_WITH.split()]
        lines += ['#define NETPERF_VERSION "2.7.1"', "#define netperf_socklen_t socklen_t"]
        for name in ("config.h", "netperf_version.h"):
            (source / "src" / name).write_text("\n".join([*lines, ""]) if name == "config.h" else "\n")
        files = [f"{name}.c" for name in _NETPERF.split()]
        flags = ["-static", "-std=gnu11", "-DHAVE_CONFIG_H", "-I."]
        _run([*_COMPILER, *flags, "-o", str(program), *files, "-lm"], source / "src")
    return program


def _suite():
    return str(recipe.Recipe.read("virtual").data["rootfs"]["suite"])


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-500:]}{done.stderr[-2000:]}"
