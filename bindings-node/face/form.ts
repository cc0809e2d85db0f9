import { McpError } from './errors';
import type { JsonSchema } from './protocol';
import { describe, readSchema, type Check, type Schema } from './schema';

/** Members of a schema that a form has. */
const KEPT = ['type', 'properties', 'required'];
/** Formats that the protocol has a word for. */
const FORMATS = ['email', 'uri', 'date', 'date-time'];

/** @internal The form of a schema, and the library's own check of what is filled in. */
export function readForm(schema: Schema<unknown>): { form: unknown; check: Check | undefined } {
    const { json, check } = readSchema(schema);
    return { form: check ? plain(json as JsonSchema) : json, check };
}

/** As forms have it: what a library says beyond that, it checks itself. */
function plain(schema: JsonSchema): object {
    const kept = Object.entries(schema).filter(([keyword]) => KEPT.includes(keyword));
    const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
    return { ...Object.fromEntries(kept), properties: Object.fromEntries(fields.map(([name, field]) => [name, plainField(field)])) };
}

function plainField({ pattern, format, ...field }: JsonSchema): object {
    return FORMATS.includes(format as string) ? { ...field, format } : field;
}

/** @internal What was filled in, as the library gives it back. */
export async function checkContent(content: unknown, check: Check): Promise<unknown> {
    const outcome = await check(content);
    if (outcome.issues) throw new McpError('ERR_MCP_BAD_ANSWER', `what was filled in does not fit: ${describe(outcome.issues)}`);
    return outcome.value;
}
