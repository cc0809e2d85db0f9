import { McpError } from './errors';
import type { JsonSchema } from './protocol';
import { toJson, type Side } from './tojson';

/** A schema object of a validation library that follows https://standardschema.dev (Zod 3.24 and later, Valibot, ArkType …). */
export interface StandardSchema<Output = unknown> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
        readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    };
}

type Issues = readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[];

type StandardResult<Output> =
    | { readonly value: Output; readonly issues?: undefined }
    | { readonly issues: Issues };

/** A schema object of Zod before 3.24. */
interface OldZodSchema<Output = unknown> {
    readonly _output: Output;
    readonly _def: unknown;
    readonly safeParse: (value: unknown) => { readonly success: true; readonly data: unknown } | { readonly success: false; readonly error: { readonly issues: Issues } };
}

type MemberSchema = StandardSchema | OldZodSchema;

/** The schema of each member of an object: `{ n: z.number() }`. Other members are left out. */
export type Shape = { readonly [name: string]: MemberSchema };

/** The schema of a tool's arguments. */
export type Schema = JsonSchema | { readonly type: 'object' } | StandardSchema | OldZodSchema | Shape;

/** The values that a schema describes; any members for a JSON Schema, whose type TypeScript does not know. */
export type Described<S, Unknown = Record<string, any>> =
    S extends { readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined } } ? Output
    : S extends { readonly _output: infer Output } ? Output
    : S extends { readonly static: infer Output } ? Output
    : S extends Shape ? DescribedBy<S>
    : Unknown;

type DescribedBy<S extends Shape> = Simple<
    { [K in keyof S as undefined extends Described<S[K]> ? never : K]: Described<S[K]> } & {
        [K in keyof S as undefined extends Described<S[K]> ? K : never]?: Described<S[K]>;
    }
>;

type Simple<T> = { [K in keyof T]: T[K] };

/** @internal */
export type Check = (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>;

/** @internal Returns a schema as JSON Schema, and the library's own validation if there is one. */
export function readSchema(schema: Schema, side: Side = 'input'): { json: unknown; check?: Check } {
    const check = checkOf(schema);
    if (check) return { json: toJson(schema, side), check };
    const members = Object.entries(schema).map(([name, member]) => ({ name, member, check: checkOf(member) }));
    const others = members.filter(({ check }) => check === undefined);
    if (others.length === 0) return readShape(members as Member[], side);
    if (others.length < members.length)
        throw new McpError(
            'ERR_MCP_SCHEMA',
            `${others[0]!.name} is no schema, but ${members.length - others.length} other members are: pass an object of schemas, ` +
                'one schema of the whole object, or a JSON Schema'
        );
    return { json: schema };
}

interface Member {
    name: string;
    member: MemberSchema;
    check: Check;
}

function readShape(members: readonly Member[], side: Side): { json: unknown; check: Check } {
    const properties = members.map(({ name, member }) => {
        const { $schema, ...json } = toJson(member, side) as { $schema?: unknown };
        if (JSON.stringify(json).includes('"$ref"'))
            throw new McpError('ERR_MCP_SCHEMA', `${name} refers to other schemas: pass one schema of the whole object, z.object(…) for example`);
        return [name, json] as const;
    });
    const required = members.filter(({ check }) => isRequired(check)).map(({ name }) => name);
    const json = { type: 'object', properties: Object.fromEntries(properties), ...(required.length > 0 && { required }) };
    return { json, check: value => checkMembers(members, value as Record<string, unknown>) };
}

/** Whether a member must be there. One whose check takes time must. */
function isRequired(check: Check): boolean {
    const outcome = check(undefined);
    if (!(outcome instanceof Promise)) return outcome.issues !== undefined;
    outcome.catch(() => {});
    return true;
}

function checkMembers(members: readonly Member[], value: Record<string, unknown>): ReturnType<Check> {
    const outcomes = members.map(({ name, check }) => check(Object.hasOwn(value, name) ? value[name] : undefined));
    const joined = (outcomes: readonly StandardResult<unknown>[]): StandardResult<unknown> => {
        const issues = outcomes.flatMap(({ issues = [] }, at) =>
            issues.map(({ message, path = [] }) => ({ message, path: [members[at]!.name, ...path] }))
        );
        if (issues.length > 0) return { issues };
        const checked = outcomes.map((outcome, at) => [members[at]!.name, (outcome as { value: unknown }).value] as const);
        return { value: Object.fromEntries(checked.filter(([name, one]) => one !== undefined || Object.hasOwn(value, name))) };
    };
    return outcomes.some(outcome => outcome instanceof Promise)
        ? Promise.all(outcomes).then(joined)
        : joined(outcomes as StandardResult<unknown>[]);
}

/** The validation of a schema of a library; nothing for a JSON Schema. ArkType's schemas are functions. */
function checkOf(schema: unknown): Check | undefined {
    if (schema === null || (typeof schema !== 'object' && typeof schema !== 'function')) return undefined;
    const library = schema as Partial<StandardSchema & OldZodSchema>;
    const standard = library['~standard'];
    if (typeof standard?.validate === 'function') return value => standard.validate(value);
    if (typeof library.safeParse !== 'function' || library._def === undefined) return undefined;
    return value => {
        const parsed = (library as OldZodSchema).safeParse(value);
        return parsed.success ? { value: parsed.data } : { issues: parsed.error.issues };
    };
}

/** @internal Describes the issues in one sentence. */
export function describe(issues: Issues): string {
    return issues
        .map(({ message, path }) => {
            const keys = (path ?? []).map(step => (typeof step === 'object' ? (step as { key: unknown }).key : step));
            return keys.length > 0 ? `${keys.join('.')}: ${message}` : message;
        })
        .join('; ');
}
