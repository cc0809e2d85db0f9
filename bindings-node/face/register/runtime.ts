/** @internal Throws in other runtimes than Node, which have none of its loader hooks. */
export function requireNode(): void {
    const global = globalThis as { Bun?: unknown; Deno?: unknown; EdgeRuntime?: unknown };
    const runtime = global.Bun ? 'Bun' : global.Deno ? 'Deno' : global.EdgeRuntime ? 'this edge runtime' : undefined;
    if (runtime) throw new Error(`mcpbolt/register needs Node 20.6 or later: ${runtime} does not have its loader hooks. Run the program with node, or without mcpbolt/register`);
}
