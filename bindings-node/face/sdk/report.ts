import { LISTS, listsByCallback, type Served } from './delegated';
import { whyNot } from './fast';
import { methodsOf, promptsOf, resourcesOf, templatesOf, toolsOf } from './private';

/** Which parts of a server are served natively, and which by the SDK. */
export interface AccelerationReport {
    /** Tools, resources and prompts that bypass the SDK's protocol. */
    native: string[];
    /** Parts that are left to the SDK, and why. */
    sdk: { what: string; why: string }[];
}

/** Methods that the engine or this module answers. */
const NATIVE = new Set([...LISTS, 'initialize', 'ping', 'server/discover', 'tools/call', 'resources/read', 'prompts/get']);

/** @internal Why the parts of a server are left to the SDK. */
export const NO_REGISTRY = 'it is neither an McpServer nor a Server of v1';

/** @internal */
export function reportOf({ mcp, proof, direct }: Served): AccelerationReport {
    const report: AccelerationReport = { native: [], sdk: [] };
    if (direct) {
        report.native.push(...methodsOf(direct.protocol).map(method => `method ${method}`));
        return report;
    }
    const why = mcp === undefined || proof === undefined ? NO_REGISTRY : proof.unfit;
    if (mcp === undefined || proof === undefined || why !== undefined) {
        report.sdk.push({ what: 'everything', why: why! });
        return report;
    }
    const say = (what: string, method: string, why?: string) => {
        const reason = proof.isOther(method) === true ? `${method} has a handler of the program's own` : why;
        if (reason === undefined) report.native.push(what);
        else report.sdk.push({ what, why: reason });
    };
    for (const [name, tool] of Object.entries(toolsOf(mcp))) say(`tool ${name}`, 'tools/call', whyNot(tool));
    for (const uri of Object.keys(resourcesOf(mcp))) say(`resource ${uri}`, 'resources/read');
    for (const name of Object.keys(templatesOf(mcp))) say(`resource template ${name}`, 'resources/read');
    for (const name of Object.keys(promptsOf(mcp))) say(`prompt ${name}`, 'prompts/get');
    for (const method of methodsOf(mcp.server)) if (!NATIVE.has(method)) report.sdk.push({ what: method, why: 'the SDK alone knows it' });
    if (listsByCallback(mcp)) report.sdk.push({ what: 'resources/list', why: 'a template lists by a callback' });
    return report;
}
