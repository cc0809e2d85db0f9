import type { Introduction } from '../context';
import type { RunOptions, RunReport } from '../definitions';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import type { Handler } from '../handler';
import type { Link } from '../link';
import type { Endpoint } from '../mount';
import { Server, type Attending } from '../server';
import type { Serving } from '../serving';
import { Bridge } from './bridge';
import { SdkCall } from './call';
import { Fast, whyNot } from './fast';
import { Proof } from './proof';
import { introductionOf, type Said } from './said';
import { generationOf, mcpServerOf, protocolOf, type Message, type SdkMcpServer, type SdkServer } from './shapes';

/** What of a server is served natively, and what by the SDK. */
export interface AccelerationReport {
    /** Tools, resources and prompts that are served without the SDK's protocol. */
    native: string[];
    /** What is left to the SDK, and why. */
    sdk: { what: string; why: string }[];
}

/** Lists, and what says that one cannot be kept. */
const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];

/** A server of the official SDK on the engine. */
export class Accelerated {
    readonly #server: SdkServer;
    readonly #mcp: SdkMcpServer | undefined;
    readonly #generation: 1 | 2;
    readonly #proof: Proof | undefined;
    readonly #fast: Fast | undefined;
    readonly #bridge: Bridge;
    #delegated: Promise<Delegated> | undefined;

    /** @internal */
    constructor(server: SdkServer) {
        const protocol = protocolOf(server);
        this.#generation = generationOf(protocol);
        this.#mcp = mcpServerOf(server);
        if (this.#mcp && protocol?._taskStore === undefined) {
            this.#proof = new Proof(this.#mcp, this.#generation);
            this.#fast = new Fast(this.#mcp, this.#generation, this.#proof);
        }
        this.#server = server;
        this.#bridge = new Bridge(server);
    }

    /** Serves until it is closed, a signal comes or, on stdin and stdout, the client goes away: see `Server.run`. */
    async run(options?: RunOptions): Promise<RunReport>;
    async run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    async run(address?: string | URL | RunOptions, options?: ServeOptions): Promise<RunReport> {
        if (typeof address === 'string' || address instanceof URL) this.#bridge.isShared = String(address) !== 'stdio:';
        return (await this.#own()).run(address as string, options);
    }

    /** Begins to serve on an address; resolves once it listens: see `Server.serve`. */
    async serve(address: string | URL, options?: ServeOptions): Promise<Serving> {
        this.#bridge.isShared = true;
        return (await this.#own()).serve(address, options);
    }

    /** Serves requests of `node:http`, of express and the like, in an HTTP server of yours: see `Server.handler`. */
    handler(options?: EndpointOptions): Handler {
        this.#bridge.isShared = true;
        const endpoint = this.#own().then(server => server.endpoint(options));
        return (request, response) => void endpoint.then(({ handler }) => handler(request, response));
    }

    /** Serves a request of the web's standards: see `Server.fetch`. */
    async fetch(request: Request): Promise<Response> {
        this.#bridge.isShared = true;
        return (await this.#own()).fetch(request);
    }

    /** Ends every connection in good order. */
    close(): void {
        void this.#delegated?.then(server => server.close());
    }

    /** What is served how, as far as that is known: of a method's handler it is known after the first request. */
    report(): AccelerationReport {
        const mcp = this.#mcp;
        if (mcp === undefined || this.#proof === undefined) {
            const why = mcp ? 'the server has a task store' : 'it is not an McpServer';
            return { native: [], sdk: [{ what: 'everything', why }] };
        }
        const report: AccelerationReport = { native: [], sdk: [] };
        const proof = this.#proof;
        const say = (what: string, method: string, why?: string) => {
            const reason = proof.isOther(method) === true ? `${method} has a handler of the program's own` : why;
            if (reason === undefined) report.native.push(what);
            else report.sdk.push({ what, why: reason });
        };
        const later = this.#generation === 2 ? 'v2 may ask the client in rounds' : undefined;
        for (const [name, tool] of Object.entries(mcp._registeredTools)) say(`tool ${name}`, 'tools/call', whyNot(tool));
        for (const uri of Object.keys(mcp._registeredResources)) say(`resource ${uri}`, 'resources/read', later);
        for (const name of Object.keys(mcp._registeredResourceTemplates)) say(`resource template ${name}`, 'resources/read', later);
        for (const name of Object.keys(mcp._registeredPrompts)) say(`prompt ${name}`, 'prompts/get', later);
        for (const method of mcp.server._requestHandlers?.keys() ?? [])
            if (!NATIVE.has(method)) report.sdk.push({ what: method, why: 'the SDK alone knows it' });
        if (listsByCallback(mcp)) report.sdk.push({ what: 'resources/list', why: 'a template lists by a callback' });
        return report;
    }

    /** Made when it is first served: until then the program may register more. */
    #own(): Promise<Delegated> {
        return (this.#delegated ??= introductionOf(this.#server).then(
            said => new Delegated(this.#bridge, said, this.#mcp, this.#proof, this.#fast)
        ));
    }
}

/** What the engine or this module answers. */
const NATIVE = new Set([...LISTS, 'initialize', 'ping', 'server/discover', 'tools/call', 'resources/read', 'prompts/get']);

function listsByCallback(mcp: SdkMcpServer): boolean {
    return Object.values(mcp._registeredResourceTemplates).some(({ resourceTemplate }) => resourceTemplate?.listCallback);
}

/** The server of ours that stands in for the SDK's. */
class Delegated extends Server {
    readonly #mcp: SdkMcpServer | undefined;
    readonly #proof: Proof | undefined;
    readonly #fast: Fast | undefined;
    readonly #bridge: Bridge;

    constructor(bridge: Bridge, said: Said, mcp: SdkMcpServer | undefined, proof: Proof | undefined, fast: Fast | undefined) {
        const { serverInfo, capabilities, instructions } = said;
        super(serverInfo.name, serverInfo.version, {
            delegate: { implementation: JSON.stringify(serverInfo), capabilities: JSON.stringify(capabilities), stateless: false },
            lifespan: { start: () => bridge.connect() as Promise<any> },
            ...(instructions && { instructions })
        });
        this.#bridge = bridge;
        this.#mcp = mcp;
        this.#proof = proof;
        this.#fast = fast;
        bridge.events = {
            changed: methods => methods.forEach(method => this.offer.forget(method)),
            answered: (call, json) => this.#keep(call, json)
        };
    }

    /** @internal */
    protected override attend(link: () => Link): Attending {
        const bridge = this.#bridge;
        const calls: (SdkCall | undefined)[] = [];
        const introduce = (said: Introduction | null) => void (said && bridge.introduce(said));
        return {
            call: (number, _, text) => {
                const call = new SdkCall(bridge, number, JSON.parse(text) as Message);
                calls[number] = call;
                bridge.attach(link());
                bridge.begin(call);
                if (!bridge.isIntroducing && this.#fast?.serve(call)) return;
                this.#fall(call);
            },
            cancelled: (number, reason) => {
                const call = calls[number];
                if (call && !call.isOver) bridge.cancel(call, reason);
            },
            initialized: text => {
                bridge.attach(link());
                introduce(JSON.parse(text));
            },
            rootsChanged: () => bridge.notify('notifications/roots/list_changed'),
            notification: text => {
                const { method, params } = JSON.parse(text);
                bridge.notify(method, params);
            },
            left: text => {
                const [, said] = JSON.parse(text) as [unknown, Introduction | null];
                if (said?.connection !== undefined) bridge.leave(said.connection);
            },
            end: () => bridge.end(),
            underWay: () => calls.filter(call => call && !call.isOver).length
        };
    }

    /** Leaves a request to the SDK, and looks how it goes about it where that is not known yet. */
    #fall(call: SdkCall): void {
        const begin = () => this.#bridge.fall(call);
        if (this.#proof) this.#proof.watch(call.message.method, begin);
        else begin();
    }

    /** Lists stay what they are until the SDK tells that they are not. */
    #keep(call: SdkCall, json: string): void {
        const { method, params } = call.message;
        const mcp = this.#mcp;
        if (mcp === undefined || !LISTS.includes(method) || !this.#proof?.holds(method)) return;
        if (params?.cursor !== undefined || call.changes !== this.#bridge.changes) return;
        if (method === 'resources/list' && listsByCallback(mcp)) return;
        this.offer.keep(method, this.#bridge.revision, json);
    }
}

/**
 * Puts a server of the official SDK on the engine: an `McpServer` of `@modelcontextprotocol/sdk` (v1) or
 * `@modelcontextprotocol/server` (v2). What it has registered is served natively, with its schemas and callbacks; what
 * is out of the ordinary, request by request, by the SDK itself. Call it instead of `server.connect(transport)`.
 */
export function accelerate(server: SdkServer): Accelerated {
    return new Accelerated(server);
}
