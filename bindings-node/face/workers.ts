import type { RunReport } from './definitions';
import type { ServeOptions } from './endpoint';
import { guarded, McpError } from './errors';
import { Link } from './link';
import { native } from './native';
import { areUnheard, GRACE, holdSignals, stopOn, type Serving } from './serving';

/** Options of a program that serves at an address. */
export interface RunAtOptions extends ServeOptions {
    /**
     * Serves with that many processes, which share the address. The program runs again in each of them, from its beginning and with the
     * same arguments; the first process starts them, serves nothing itself, and replaces one that ends, after 100 ms, and later if
     * it ends soon. SIGHUP replaces all, one by one: over HTTP, a request without a session is answered if it takes at most 5 s and the grace period. SIGTERM, SIGINT and `close` end
     * all: calls in flight have `grace`, and a process that has not ended 40 s later is killed. If one of them ends before all serve, all end, and `run` rejects.
     *
     * A request that comes to another process than its session's is passed on to that one. What a program keeps in memory is of one
     * process, and so are the limits of the other options. Not on `stdio:`, not on Windows, and for one server of a program.
     */
    workers?: number;
    /**
     * With `workers`: an address such as `http://127.0.0.1:9090`, where `/readyz` has status 200 while requests are taken and 503 while
     * the first processes start or the last ones end, and `/healthz` and `/livez` have status 200.
     */
    health?: string | URL;
    /** Called with the address, whose port is the one that the system chose if that was 0, once clients can connect; not in the processes of `workers`. */
    onListening?: (address: string) => void;
}

/** A server or a supervisor of workers, while it serves. Its address is empty if it ended before clients could connect. */
type Served = Pick<Serving, 'address' | 'ended' | 'close'>;

/** The arguments by which this program was started, before it changes them. */
const ARGUMENTS = [...process.execArgv, ...process.argv.slice(1)];

/** Whether a server of this process is served with workers. */
let isTaken = false;

/** @internal Runs a server that `serve` serves: in this process, as one of several if it is a worker, or else in several that it starts. */
export async function runAt(
    name: string,
    address: string | URL,
    { workers, health, onListening, ...options }: RunAtOptions,
    links: Set<Link>,
    serve: (options: ServeOptions, isWorker: boolean) => Promise<Served>
): Promise<RunReport> {
    if (workers === undefined && health !== undefined) throw misuse('health', 'it is answered by the process that starts workers; pass workers, of which one is enough');
    if (workers !== undefined) take(workers, String(address));
    try {
        const isWorker = workers !== undefined && guarded(() => native.isWorker());
        const isAlone = workers === undefined || isWorker;
        const served = await (isAlone ? serve(options, isWorker) : supervise(name, String(address), workers, health, options, links));
        try {
            if (!isWorker && served.address !== '') onListening?.(served.address);
        } catch (error) {
            await served.close();
            throw error;
        }
        return await served.ended;
    } finally {
        if (workers !== undefined) isTaken = false;
    }
}

const misuse = (option: string, why: string) => new McpError('ERR_MCP_MISUSE', `${option}: ${why}`);

function take(workers: number, address: string): void {
    if (!Number.isInteger(workers) || workers < 1) throw misuse('workers', `a whole number from 1 on, not ${workers}`);
    if (address === 'stdio:') throw misuse('workers', 'stdio: has one client and one process; pass an address such as http://127.0.0.1:8000/mcp');
    if (isTaken) throw misuse('workers', 'another server of this program runs with workers, which would serve this one, too; put it into a program of its own');
    isTaken = true;
}

/** Starts processes that serve. Resolves once all do. */
async function supervise(
    name: string,
    address: string,
    workers: number,
    health: string | URL | undefined,
    { grace = GRACE, signals = areUnheard(), signal }: ServeOptions,
    links: Set<Link>
): Promise<Served> {
    if (!isProgram()) throw misuse('workers', 'this program cannot be started again for each process; run it as a file');
    const command = [process.execPath, ...ARGUMENTS];
    const unhear = signals ? holdSignals() : () => {};
    let [tell, over]: ((text: string) => void)[] = [];
    const opened = new Promise<string>(resolve => (tell = resolve));
    const report = new Promise<string>(resolve => (over = resolve));
    const begin = (wake: () => void) => native.supervise(command, address, workers, grace, health && String(health), signals, wake);
    let link: Link;
    try {
        link = new Link({ opened: tell!, ended: over! }, wake => guarded(() => begin(wake)), `workers of ${name}`);
    } catch (error) {
        unhear();
        throw error;
    }
    links.add(link);
    const forget = stopOn(signal, () => link.native.stop());
    const ended = report.then(text => {
        links.delete(link);
        (unhear(), forget());
        const { error, ...said } = JSON.parse(text) as RunReport & { error?: string };
        if (error !== undefined) throw new McpError('ERR_MCP_IO', error);
        return said;
    });
    const listening = await Promise.race([opened.then(text => JSON.parse(text) as string), ended.then(() => '')]);
    return { address: listening, ended, close: () => (link.native.stop(), ended) };
}

/** Whether there is a program in `ARGUMENTS`: not in an interactive process, nor in one that read it from stdin. */
function isProgram(): boolean {
    const [file] = process.argv.slice(1);
    return (file !== undefined && file !== '-') || process.execArgv.some(word => /^(-e|-p|-pe|--eval|--print)\b/.test(word));
}
