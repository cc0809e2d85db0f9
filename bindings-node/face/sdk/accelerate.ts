import type { RunOptions, RunReport } from '../definitions';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import type { Handler } from '../handler';
import type { Serving } from '../serving';
import { McpError } from '../errors';
import { Bridge } from './bridge';
import { Delegated, LISTS, listsByCallback, type Served } from './delegated';
import { Fast, whyNot } from './fast';
import { Proof } from './proof';
import { introductionOf } from './said';
import { authenticates, generationOf, mcpServerOf, protocolOf, type SdkServer } from './shapes';

/** What of a server is served natively, and what by the SDK. */
export interface AccelerationReport {
    /** Tools, resources and prompts that are served without the SDK's protocol. */
    native: string[];
    /** What is left to the SDK, and why. */
    sdk: { what: string; why: string }[];
}

/** @internal A server of the SDK's, ready to be served; of `revision` alone, or of those with a handshake. */
export function servedOf(server: SdkServer, revision?: string): Served {
    const protocol = protocolOf(server);
    if (protocol === undefined && authenticates(server))
        throw new McpError('ERR_MCP_MISUSE', 'its clients are authenticated by what it listens with itself: serve it by its own start()');
    const bridge = new Bridge({ server, opens: protocol === undefined, ...(revision !== undefined && { revision }) });
    const mcp = mcpServerOf(server);
    if (mcp === undefined || protocol?._taskStore !== undefined) return { bridge, mcp };
    const generation = generationOf(protocol);
    const proof = new Proof(mcp, generation);
    return { bridge, mcp, proof, fast: new Fast(mcp, generation, proof) };
}

/** A server of the official SDK on the engine. */
export class Accelerated {
    readonly #server: SdkServer;
    readonly #served: Served;
    #delegated: Delegated | undefined;

    /** @internal */
    constructor(server: SdkServer) {
        this.#server = server;
        this.#served = servedOf(server);
    }

    /** Serves until it is closed, a signal comes or, on stdin and stdout, the client goes away: see `Server.run`. */
    async run(options?: RunOptions): Promise<RunReport>;
    async run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    async run(address?: string | URL | RunOptions, options?: ServeOptions): Promise<RunReport> {
        const isAddress = typeof address === 'string' || address instanceof URL;
        return this.#own(isAddress && String(address) !== 'stdio:').run(address as string, options);
    }

    /** Begins to serve on an address; resolves once it listens: see `Server.serve`. */
    async serve(address: string | URL, options?: ServeOptions): Promise<Serving> {
        return this.#own().serve(address, options);
    }

    /**
     * Serves requests of `node:http`, of express and the like, in an HTTP server of yours: see `Server.handler`. What a
     * middleware has put into `request.auth`, the SDK's handlers find as `authInfo`.
     */
    handler(options?: EndpointOptions): Handler {
        return this.#own().handler(options);
    }

    /** Serves a request of the web's standards: see `Server.fetch`. */
    async fetch(request: Request): Promise<Response> {
        return this.#own().fetch(request);
    }

    /** Ends every connection in good order. */
    close(): void {
        this.#delegated?.close();
    }

    /** What is served how, as far as that is known: of a method's handler it is known after the first request. */
    report(): AccelerationReport {
        const { mcp, proof } = this.#served;
        if (mcp === undefined || proof === undefined) {
            const why = mcp ? 'the server has a task store' : 'it is not an McpServer, whose tools can be seen';
            return { native: [], sdk: [{ what: 'everything', why }] };
        }
        const report: AccelerationReport = { native: [], sdk: [] };
        const say = (what: string, method: string, why?: string) => {
            const reason = proof.isOther(method) === true ? `${method} has a handler of the program's own` : why;
            if (reason === undefined) report.native.push(what);
            else report.sdk.push({ what, why: reason });
        };
        for (const [name, tool] of Object.entries(mcp._registeredTools)) say(`tool ${name}`, 'tools/call', whyNot(tool));
        for (const uri of Object.keys(mcp._registeredResources)) say(`resource ${uri}`, 'resources/read');
        for (const name of Object.keys(mcp._registeredResourceTemplates)) say(`resource template ${name}`, 'resources/read');
        for (const name of Object.keys(mcp._registeredPrompts)) say(`prompt ${name}`, 'prompts/get');
        for (const method of mcp.server._requestHandlers?.keys() ?? [])
            if (!NATIVE.has(method)) report.sdk.push({ what: method, why: 'the SDK alone knows it' });
        if (listsByCallback(mcp)) report.sdk.push({ what: 'resources/list', why: 'a template lists by a callback' });
        return report;
    }

    /** Made when it is first served: until then the program may register more. */
    #own(isShared = true): Delegated {
        if (isShared) this.#served.bridge.isShared = true;
        return (this.#delegated ??= new Delegated(introductionOf(protocolOf(this.#server)), { handshake: this.#served }));
    }
}

/** What the engine or this module answers. */
const NATIVE = new Set([...LISTS, 'initialize', 'ping', 'server/discover', 'tools/call', 'resources/read', 'prompts/get']);

/**
 * Puts a server of the official SDK on the engine: an `McpServer` of `@modelcontextprotocol/sdk` (v1) or
 * `@modelcontextprotocol/server` (v2). What it has registered is served natively, with its schemas and callbacks; what
 * is out of the ordinary, request by request, by the SDK itself. Call it instead of `server.connect(transport)`. A `FastMCP` of
 * `fastmcp`, whose tools nobody sees but itself, is served by its own protocol on the engine's carriers.
 */
export function accelerate(server: SdkServer): Accelerated {
    return new Accelerated(server);
}
