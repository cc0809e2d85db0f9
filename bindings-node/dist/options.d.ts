import { type Answers } from './answering';
import type { Profile } from './definitions';
import type { ClientEvents } from './events';
import type { Integers } from './numbers';
import type { Revision, Trace } from './protocol';
export interface ClientOptions extends Answers {
    /** The client's name, as the server is told; `mcpbolt` by default. */
    name?: string;
    /** The client's version, as the server is told; `0` by default. */
    version?: string;
    /**
     * How the connection opens: `probe` asks for the stateless era first and falls back to the handshake, `handshake`
     * and `stateless` take one for granted; `actions` speaks the action dialect instead: `action` and its like work then,
     * and nothing of MCP.
     */
    opening?: 'probe' | 'handshake' | 'stateless' | 'actions';
    /** Whose reading of the protocol is spoken, up to 2025-11-25; `official` by default. See `ServerOptions.profile`. */
    profile?: Profile;
    /** The one revision to speak; what both sides speak, by default. */
    revision?: Revision;
    /** How long each request waits for news, in ms, unless it says otherwise; 60 s by default. */
    timeout?: number;
    /**
     * What integers beyond 2^53 become in results, in what the server asks and tells: see `Integers`; `number` by
     * default. Every `bigint` goes out as the integer that it is.
     */
    integers?: Integers;
    /** Lets servers make tasks of calls, from 2026-07-28 on: `callTool` waits for what comes of them, see `startTool`. */
    tasks?: boolean;
    /**
     * Refuses results that are not what the revisions say of them (`ERR_MCP_BAD_ANSWER` names the member); by default
     * they are handed on as they come.
     */
    checkResults?: boolean;
    /** Extensions that the client declares, from 2026-07-28 on: settings by name. See `capabilities`, too. */
    extensions?: Readonly<Record<string, object>>;
    /** Shown each message. */
    trace?: Trace;
    /** Listeners that are there before anything is told; `client.on(…)` adds more. */
    on?: {
        readonly [Name in keyof ClientEvents]?: (...args: ClientEvents[Name]) => void;
    };
}
export interface SpawnOptions extends ClientOptions {
    /** The directory that it runs in; ours by default. */
    cwd?: string;
    /** Variables besides the few harmless ones that are inherited. */
    env?: Record<string, string>;
    /** What becomes of its stderr: as ours, thrown away, or handed over line by line. */
    stderr?: 'inherit' | 'ignore' | ((line: string) => void);
    /** How long it may take to end after its stdin is closed, and again after SIGTERM, in ms; 2000 by default. */
    closeMs?: number;
}
/** How a server's process ended. */
export interface Exit {
    code: number | null;
    signal: number | null;
}
