"""`python -m evmperf.publish.grafana`: write all generated files below dashboards/."""

from evmperf.publish.grafana.write import DASHBOARDS, FOLDER, files

written = files()
for name, text in written.items():
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
for folder in DASHBOARDS.values():
    for path in (FOLDER / folder).glob("*.json"):
        if f"{folder}/{path.name}" not in written:
            path.unlink()
