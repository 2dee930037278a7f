"""`python -m evmperf.grafana`: write all generated files below dashboards/."""

from evmperf.grafana.write import DASHBOARDS, FOLDER, files

for name, text in files().items():
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
for path in (FOLDER / DASHBOARDS).glob("*.json"):
    if f"{DASHBOARDS}/{path.name}" not in files():
        path.unlink()
