import { createRequire } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { McpError } from './errors';

/** @internal Whether a schema describes what comes in, before conversions, or what goes out. */
export type Side = 'input' | 'output';

/** The ways in which libraries convert a schema to JSON Schema by themselves. */
interface Convertible {
    toJSONSchema?: (options?: object) => unknown;
    toJsonSchema?: () => unknown;
    _zod?: unknown;
    '~standard'?: { vendor: string; jsonSchema?: { [side in Side]?: (options: object) => unknown } };
}

/** Packages that convert the schemas of others. */
const CONVERTERS: Record<string, { from: string; convert: (module: any, schema: unknown, io: Side) => unknown }> = {
    'zod 4': { from: 'zod/v4/core', convert: ({ toJSONSchema }, schema, io) => toJSONSchema(schema, { io }) },
    'zod': {
        from: 'zod-to-json-schema',
        convert: ({ zodToJsonSchema }, schema, io) => zodToJsonSchema(required(schema), { strictUnions: true, pipeStrategy: io })
    },
    'valibot': {
        from: '@valibot/to-json-schema',
        convert: ({ toJsonSchema }, schema, io) => toJsonSchema(schema, { typeMode: io, errorMode: 'throw' })
    }
};

/** A member's schema of Zod 3, without its being optional. */
function required(schema: any): unknown {
    return schema._def.typeName === 'ZodOptional' ? required(schema._def.innerType) : schema;
}

/** @internal A library's schema as JSON Schema, converted by the schema itself or by a package that the program has. */
export function toJson(schema: unknown, side: Side): unknown {
    const { '~standard': standard, toJSONSchema, toJsonSchema, _zod } = schema as Convertible;
    const own = standard?.jsonSchema?.[side];
    if (own) return own({ target: 'draft-2020-12' });
    if (typeof toJSONSchema === 'function') return toJSONSchema.call(schema, { io: side });
    if (typeof toJsonSchema === 'function') return toJsonSchema.call(schema);
    const library = _zod ? 'zod 4' : (standard?.vendor ?? 'zod');
    const converter = CONVERTERS[library];
    if (converter === undefined)
        throw new McpError('ERR_MCP_SCHEMA', `schemas of ${library} cannot be converted to JSON Schema: pass a JSON Schema`);
    const module = load(converter.from);
    if (module === undefined)
        throw new McpError('ERR_MCP_SCHEMA', `schemas of ${library} are converted to JSON Schema by ${converter.from}: npm install ${converter.from.split('/v4')[0]}`);
    return converter.convert(module, schema, side);
}

/** The codes of Node's errors for a module that is missing, or that the installed release does not export. */
const UNRESOLVED = ['MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED', 'ERR_REQUIRE_ESM'];

/** A module of the program, found from its main file or else from the working directory. */
function load(name: string): unknown {
    for (const from of [process.argv[1], join(process.cwd(), 'program.js')])
        if (from !== undefined && isAbsolute(from))
            try {
                return createRequire(from)(name);
            } catch (error) {
                if (!UNRESOLVED.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
            }
    return undefined;
}
