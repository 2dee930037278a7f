"""QEMU and the tester's programs: of a newer Debian suite than this host's, run through their own C
library, so that no chroot is needed.
"""

from pathlib import Path

from evmperf.model.errors import LabError
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.recipe import Recipe
from evmperf_virtual.steps import BuildSteps, output

_TIMEOUT = 60.0
_SCRIPT = """\
#!/bin/sh
root=${{0%/*}}/../root
export QEMU_MODULE_DIR="$root/{libraries}/qemu"
exec "$root/{loader}" --library-path "$root/{libraries}" "$root/usr/bin/{name}" "$@"
"""


def build(section: str, recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack a section's packages for this host into `target`, with a script for each program in bin/."""
    spec, root, scripts = recipe.data[section], target / "root", target / "bin"
    architecture = steps.run(["dpkg", "--print-architecture"], "Asking for the architecture", "apt").strip()
    with (
        steps.step(f"{', '.join(spec['programs'])} from Debian {spec['suite']}"),
        DebianArchive(steps, target / "apt", spec["suite"], architecture) as archive,
    ):
        archive.unpack(archive.resolve(spec["packages"], spec["leave_out"]), root)
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = sorted(root.glob("usr/lib/*-linux-gnu"))
    missing = [name for name in spec["programs"] if not (root / "usr/bin" / name).exists()]
    if missing or not loaders or not libraries:
        what = ", ".join(missing) or "C library"
        raise LabError(f"{spec['packages']} bring no {what}; correct the recipe's {section}.")
    scripts.mkdir()
    places = {"loader": loaders[0].relative_to(root), "libraries": libraries[0].relative_to(root)}
    for name in spec["programs"]:
        (scripts / name).write_text(_SCRIPT.format(name=name, **places))
        (scripts / name).chmod(0o755)


def fastest_aio(qemu_img: Path, scratch: Path) -> str:
    """QEMU's fastest way to read files here: io_uring, where a container allows it, else threads."""
    scratch.write_bytes(bytes(65536))
    try:
        output([qemu_img, "bench", "-f", "raw", "-c", "1", "-i", "io_uring", scratch], _TIMEOUT)
    except LabError:
        return "threads"
    finally:
        scratch.unlink()
    return "io_uring"
