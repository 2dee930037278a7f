"""`python -m evmperf.publish.grafana [FOLDER]`: write all files below FOLDER (default: dashboards)."""

import sys
from pathlib import Path

from evmperf.publish.grafana.write import DASHBOARDS, files

folder = Path(*sys.argv[1:] or ["dashboards"])
written = files()
for name, text in written.items():
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
for path in (folder / DASHBOARDS).glob("*.json"):
    if str(path.relative_to(folder)) not in written:
        path.unlink()
print(f"{folder}: {len(written)} files")
