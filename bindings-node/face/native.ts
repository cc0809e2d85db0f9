/** Loads the native module, private to this package. `binding.d.ts` is written when the module is built. */
import type * as binding from './binding';

/** @internal The classes and options of the native module. */
export type {
    Decoder as NativeDecoder,
    Encoded as NativeEncoded,
    EngineConnection as NativeEngineConnection,
    Entries as NativeEntries,
    External as NativeExternal,
    Front as NativeFront,
    Handoffs as NativeHandoffs,
    Ledger as NativeLedger,
    Link as NativeLink,
    Login as NativeLogin,
    LoginReplies as NativeLoginReplies,
    Mount as NativeMount,
    Passing as NativePassing,
    Permissions as NativePermissions,
    ResultCache as NativeResultCache,
    Rule as NativeRule,
    SkillFile as NativeSkillFile,
    Telemetry as NativeTelemetry
} from './binding';

/** Suffixes of the prebuilt packages' names, after platform and processor. */
const ABIS: { readonly [platform: string]: readonly string[] } = { linux: ['-gnu', '-musl'], win32: ['-msvc'] };

/** Loads the module that was built in this folder, or else the one installed for this platform. */
function load(): typeof binding {
    const here = `${process.platform}-${process.arch}`;
    const packages = (ABIS[process.platform] ?? ['']).map(abi => `@mcpbolt/${here}${abi}`);
    let cause: unknown;
    for (const name of [`../mcpbolt.${here}.node`, ...packages]) {
        try {
            return require(name);
        } catch (error) {
            // A module that exists but fails to load tells more than a missing one.
            if (cause === undefined || (error as { code?: string }).code !== 'MODULE_NOT_FOUND') cause = error;
        }
    }
    const message = `mcpbolt has no native module for ${here}: install ${packages.join(' or ')}, or build it from the repository (npm run build)`;
    throw new Error(message, { cause });
}

/** @internal */
export const native: typeof binding = load();
