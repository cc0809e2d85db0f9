import { McpError } from './errors';
import type { JsonSchema } from './protocol';

/** A schema object of a validation library that follows https://standardschema.dev (zod, valibot, arktype …). */
export interface StandardSchema<Output = unknown> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
        readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    };
}

type StandardResult<Output> =
    | { readonly value: Output; readonly issues?: undefined }
    | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** The schema of a tool's arguments. */
export type Schema<Args> = JsonSchema | StandardSchema<Args>;

/** @internal */
export type Check = (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>;

/** @internal Returns a schema as JSON Schema, and the library's own validation if there is one. */
export function readSchema(schema: Schema<unknown>, side: 'input' | 'output' = 'input'): { json: unknown; check?: Check } {
    if (!('~standard' in schema)) return { json: schema };
    const standard = (schema as StandardSchema)['~standard'];
    return { json: jsonSchemaOf(schema as ToJsonSchema, side), check: value => standard.validate(value) };
}

/** The two ways in which libraries convert a schema to JSON Schema. */
interface ToJsonSchema {
    toJSONSchema?: (options?: object) => unknown;
    '~standard': { jsonSchema?: { [side in 'input' | 'output']?: (options: object) => unknown } };
}

function jsonSchemaOf(schema: ToJsonSchema, side: 'input' | 'output'): unknown {
    const own = schema['~standard'].jsonSchema?.[side];
    if (own) return own({ target: 'draft-2020-12' });
    if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema({ io: side });
    throw new McpError('ERR_MCP_SCHEMA', 'cannot convert this schema to JSON Schema; pass JSON Schema or use Zod 4');
}

/** @internal Describes the issues in one sentence. */
export function describe(issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[]): string {
    return issues
        .map(({ message, path }) => {
            const keys = (path ?? []).map(step => (typeof step === 'object' ? (step as { key: unknown }).key : step));
            return keys.length > 0 ? `${keys.join('.')}: ${message}` : message;
        })
        .join('; ');
}
