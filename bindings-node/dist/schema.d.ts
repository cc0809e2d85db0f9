import type { JsonSchema } from './protocol';
/** A schema object of a validation library that follows https://standardschema.dev (zod, valibot, arktype …). */
export interface StandardSchema<Output = unknown> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
        readonly types?: {
            readonly input: unknown;
            readonly output: Output;
        } | undefined;
    };
}
type StandardResult<Output> = {
    readonly value: Output;
    readonly issues?: undefined;
} | {
    readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly unknown[] | undefined;
    }[];
};
/** The schema of a tool's arguments. */
export type Schema<Args> = JsonSchema | StandardSchema<Args>;
export {};
