import { McpError } from './errors';
import type { JsonSchema } from './protocol';
import { describe, readSchema, type Check, type Schema } from './schema';

/** Schema keywords that a form may have. */
const KEPT = ['type', 'properties', 'required'];
/** String formats that the protocol defines for forms. */
const FORMATS = ['email', 'uri', 'date', 'date-time'];

/** @internal Returns the form of a schema, and the library's own validation of the input. */
export function readForm(schema: Schema): { form: unknown; check: Check | undefined } {
    const { json, check } = readSchema(schema);
    return { form: check ? plain(json as JsonSchema) : json, check };
}

/** Reduces a schema to what forms allow; the library validates the rest itself. */
function plain(schema: JsonSchema): object {
    const kept = Object.entries(schema).filter(([keyword]) => KEPT.includes(keyword));
    const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
    return { ...Object.fromEntries(kept), properties: Object.fromEntries(fields.map(([name, field]) => [name, plainField(field)])) };
}

function plainField({ pattern, format, ...field }: JsonSchema): object {
    return FORMATS.includes(format as string) ? { ...field, format } : field;
}

/** @internal Validates the input, and returns it as the library converted it. */
export async function checkContent(content: unknown, check: Check): Promise<unknown> {
    const outcome = await check(content);
    if (outcome.issues) throw new McpError('ERR_MCP_BAD_ANSWER', `the input does not fit the form's schema: ${describe(outcome.issues)}`);
    return outcome.value;
}
