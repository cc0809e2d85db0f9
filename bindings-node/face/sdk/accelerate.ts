import type { RunOptions, RunReport } from '../definitions';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import type { Handler } from '../handler';
import type { Serving } from '../serving';
import type { RunAtOptions } from '../workers';
import { McpError } from '../errors';
import { Bridge } from './bridge';
import { Delegated, type Served } from './delegated';
import { Direct } from './direct';
import { generationOf } from './private';
import { Observed, unfitToCall } from './proof';
import { reportOf, type AccelerationReport } from './report';
import { introductionOf } from './said';
import { servedBy } from './served';
import { authenticates, mcpServerOf, protocolOf, type SdkServer } from './shapes';

/** @internal Prepares a server of the SDK; for `revision` only, or for the revisions with a handshake. */
export function servedOf(server: SdkServer, revision?: string): Served {
    const protocol = protocolOf(server);
    if (protocol === undefined && authenticates(server))
        throw new McpError('ERR_MCP_MISUSE', 'FastMCP authenticates clients in its own listener; serve it with its start()');
    const bridge = new Bridge({ server, opens: protocol === undefined, ...(revision !== undefined && { revision }) });
    const mcp = mcpServerOf(server);
    if (mcp !== undefined) return servedBy(bridge, mcp, new Observed(mcp));
    const isFit = protocol !== undefined && generationOf(protocol) === 1 && unfitToCall(protocol) === undefined;
    return isFit ? { bridge, direct: new Direct(protocol) } : { bridge };
}

/** A server of the official SDK that runs on the engine. */
export class Accelerated {
    readonly #server: SdkServer;
    readonly #served: Served;
    #delegated: Delegated | undefined;

    /** @internal */
    constructor(server: SdkServer) {
        this.#server = server;
        this.#served = servedOf(server);
    }

    /**
     * Serves until it is closed, a signal arrives or, on stdin and stdout, the client disconnects: see `Server.run`.
     */
    async run(options?: RunOptions): Promise<RunReport>;
    async run(address: string | URL, options?: RunAtOptions): Promise<RunReport>;
    async run(address?: string | URL | RunOptions, options?: RunAtOptions): Promise<RunReport> {
        const isAddress = typeof address === 'string' || address instanceof URL;
        return this.#own(isAddress && String(address) !== 'stdio:').run(address as string, options);
    }

    /** Starts to serve at an address; resolves once it listens: see `Server.serve`. */
    async serve(address: string | URL, options?: ServeOptions): Promise<Serving> {
        return this.#own().serve(address, options);
    }

    /**
     * Serves requests of `node:http`, express and similar frameworks, in an HTTP server of yours: see `Server.handler`.
     * Handlers of the SDK find what a middleware has put into `request.auth` as `authInfo`.
     */
    handler(options?: EndpointOptions): Handler {
        return this.#own().handler(options);
    }

    /** Serves a web-standard `Request`: see `Server.fetch`. */
    async fetch(request: Request): Promise<Response> {
        return this.#own().fetch(request);
    }

    /** Closes every connection gracefully. */
    close(): void {
        this.#delegated?.close();
    }

    /** Reports how each part is served, as far as known: for the handler of a method, only after its first request. */
    report(): AccelerationReport {
        return reportOf(this.#served);
    }

    /** Created when first served, so that the program may register more until then. */
    #own(isShared = true): Delegated {
        if (isShared) this.#served.bridge.isShared = true;
        return (this.#delegated ??= new Delegated(introductionOf(protocolOf(this.#server)), { handshake: this.#served }));
    }
}

/**
 * Runs a server of the official SDK on the engine: an `McpServer` of `@modelcontextprotocol/sdk` (v1) or
 * `@modelcontextprotocol/server` (v2). Call it instead of `server.connect(transport)`. Everything that the server has
 * registered is served natively, with its schemas and callbacks; requests with unusual features are passed to the SDK, one by one.
 * A `FastMCP` of `fastmcp`, which hides its tools, is served by its own protocol over the engine's transports.
 */
export function accelerate(server: SdkServer): Accelerated {
    return new Accelerated(server);
}
