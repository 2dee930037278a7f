// Holds dashboards against Grafana's own types: node types.mjs FILE...
// The whole file against Dashboard, each query against DataQuery, and options and field settings of
// each panel against the types of its kind, for each Grafana that is supported. Written as TypeScript
// literals, so that a name Grafana does not know is an error.
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const kinds = {
  barchart: "barchart/panelcfg/x/BarChartPanelCfg",
  histogram: "histogram/panelcfg/x/HistogramPanelCfg",
  stat: "stat/panelcfg/x/StatPanelCfg",
  statetimeline: "statetimeline/panelcfg/x/StateTimelinePanelCfg",
  table: "table/panelcfg/x/TablePanelCfg",
  timeseries: "timeseries/panelcfg/x/TimeSeriesPanelCfg",
};
// Newest first; package.json has their versions.
const grafanas = { 13: "@grafana/schema", 12: "grafana-schema-12" };

const head = (schema) => `
import type { Dashboard, DataQuery } from "${schema}";
${Object.entries(kinds)
  .map(([kind, path]) => `import type * as ${kind} from "./node_modules/${schema}/dist/esm/raw/composable/${path}_types.gen";`)
  .join("\n")}
// Types of what stands in JSON: text where the types have an enumeration.
type Plain<T> = T extends string ? \`\${T}\`
  : T extends number ? number
  : T extends boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
// What InfluxDB's data source adds to a query.
type Query = Plain<DataQuery> & { query: string };
type Annotations = { annotations: { list: { target: Query }[] } };
type NoFields = Record<string, never>;
`;

function source(file, schema) {
  const text = readFileSync(file, "utf8");
  const dashboard = JSON.parse(text);
  const lines = [head(schema), `const whole: Plain<Dashboard> & Annotations = ${text};`, "void whole;"];
  const panels = dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  panels.forEach((panel, number) => {
    if (panel.type === "row") return;
    const kind = panel.type.replaceAll("-", "");
    if (!(kind in kinds)) throw new Error(`${file}: no types for a ${panel.type}`);
    const options = JSON.stringify(panel.options, null, 1);
    lines.push(`const options${number}: Partial<Plain<${kind}.Options>> = ${options};`);
    lines.push(`void options${number};`);
    lines.push(`const queries${number}: Query[] = ${JSON.stringify(panel.targets, null, 1)};`);
    lines.push(`void queries${number};`);
    const custom = panel.fieldConfig?.defaults?.custom;
    if (custom === undefined) return;
    const fields = kind === "stat" ? "NoFields" : `Partial<Plain<${kind}.FieldConfig>>`;
    lines.push(`const custom${number}: ${fields} = ${JSON.stringify(custom, null, 1)};`);
    lines.push(`void custom${number};`);
  });
  return lines.join("\n");
}

const sources = new Map(
  Object.entries(grafanas).flatMap(([number, schema]) =>
    process.argv
      .slice(2)
      .map((file) => [join(here, `${number}-${basename(file)}.ts`), source(file, schema)]),
  ),
);
const settings = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  target: ts.ScriptTarget.ES2022,
};
const host = ts.createCompilerHost(settings);
const { getSourceFile, fileExists } = host;
host.fileExists = (name) => sources.has(name) || fileExists(name);
host.getSourceFile = (name, ...rest) =>
  sources.has(name)
    ? ts.createSourceFile(name, sources.get(name), settings.target)
    : getSourceFile(name, ...rest);
const program = ts.createProgram([...sources.keys()], settings, host);
const faults = ts.getPreEmitDiagnostics(program);
for (const fault of faults) {
  const where = fault.file
    ? `${basename(fault.file.fileName)}:${fault.file.getLineAndCharacterOfPosition(fault.start).line + 1}: `
    : "";
  console.log(where + ts.flattenDiagnosticMessageText(fault.messageText, "\n"));
}
process.exit(faults.length ? 1 : 0);
