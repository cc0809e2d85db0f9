// The types of arguments follow from the schemas of each library. Nothing here runs.
import { Server } from 'mcpbolt';
import type { Described } from 'mcpbolt';
import { Type } from '@sinclair/typebox';
import { type } from 'arktype';
import * as TypeBox from 'typebox';
import * as v from 'valibot';
import * as z from 'zod';
import * as z3 from 'zod3';
import * as oldZ3 from 'zod-before-3.24';
import * as oldZ4 from 'zod-before-4.2';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};
type Same<A, B> = Equal<{ [K in keyof A]: A[K] }, { [K in keyof B]: B[K] }>;
type Taken = { n: number; s?: string | undefined };

const server = new Server('typed', '1');
server.tool('zod', { inputSchema: z.object({ n: z.number(), s: z.string().optional() }) }, args => holds<Same<typeof args, Taken>>());
server.tool('shape', { inputSchema: { n: z.number(), s: z.string().optional() } }, args => holds<Same<typeof args, Taken>>());
server.tool('zod 3', { inputSchema: z3.object({ n: z3.number(), s: z3.string().optional() }) }, args => holds<Same<typeof args, Taken>>());
server.tool('shape 3', { inputSchema: { n: z3.number(), s: z3.string().optional() } }, args => holds<Same<typeof args, Taken>>());
server.tool('old 3', { inputSchema: oldZ3.object({ n: oldZ3.number(), s: oldZ3.string().optional() }) }, args => holds<Same<typeof args, Taken>>());
server.tool('old shape 3', { inputSchema: { n: oldZ3.number(), s: oldZ3.string().optional() } }, args => holds<Same<typeof args, Taken>>());
server.tool('old 4', { inputSchema: oldZ4.object({ n: oldZ4.number(), s: oldZ4.string().optional() }) }, args => holds<Same<typeof args, Taken>>());
server.tool('valibot', { inputSchema: v.object({ n: v.number(), s: v.optional(v.string()) }) }, args => holds<Same<typeof args, Taken>>());
server.tool('valibot shape', { inputSchema: { n: v.number(), s: v.optional(v.string()) } }, args => holds<Same<typeof args, Taken>>());
server.tool('arktype', { inputSchema: type({ n: 'number', 's?': 'string' }) }, args => holds<Equal<typeof args, { n: number; s?: string }>>());
server.tool('old typebox', { inputSchema: Type.Object({ n: Type.Number(), s: Type.Optional(Type.String()) }) }, args =>
    holds<Equal<typeof args, { n: number; s?: string }>>());
server.tool('json', { inputSchema: { type: 'object' } }, args => holds<Equal<typeof args, Record<string, any>>>());
server.tool('none', {}, args => holds<Equal<typeof args, Record<string, any>>>());
server.tool('empty', { inputSchema: {} }, args => holds<Equal<typeof args, {}>>());

// TypeBox 1 has a type function instead of a member that holds the type.
const numbers = TypeBox.Object({ n: TypeBox.Number() });
server.tool<TypeBox.Static<typeof numbers>>('typebox', { inputSchema: numbers }, args => holds<Equal<typeof args, { n: number }>>());

holds<Equal<Described<{ n: z.ZodNumber }>, { n: number }>>();
// @ts-expect-error A schema is an object.
server.tool('text', { inputSchema: 'object' }, () => 0);
