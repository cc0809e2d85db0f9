// Servers that others have published on npm and that run without an account: how each is installed, started and called.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const CARRIED = 'stdio: the engine carries';
const BUNDLED = 'the program served by itself, if at all: it loaded no package of an SDK';

/** A script to check. */
function script(folder) {
    writeFileSync(join(folder, 'a.js'), 'var a = 1;\n');
    writeFileSync(join(folder, 'eslint.config.js'), "module.exports = [{ rules: { 'no-var': 'error' } }];\n");
}

/** Files to read. */
function texts(folder) {
    mkdirSync(join(folder, 'within'));
    writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n');
    writeFileSync(join(folder, 'within/b.txt'), 'three\n');
}

/**
 * - `package`: its name on npm, with the release that is tested
 * - `command`: its program, unless that has the package's name, and its arguments, in a folder that `prepare` fills
 * - `env`: variables of its environment, for that folder
 * - `known`: values for parameters of these names, and for those of one tool (`tool.parameter`)
 * - `without`: tools that are not called, each with the reason
 * - `varies`: tools whose answers contain the time or the like: only their shape is compared
 * - `how`: what `mcpbolt exec` says of it; `stdio: the engine serves` if nothing else is given
 * - `isListedOnly`: whether no tool is called, as each needs something that is not there
 */
export const SERVERS = [
    {
        package: '@modelcontextprotocol/server-filesystem@2026.8.31',
        args: ['.'],
        prepare: texts,
        known: {
            path: 'a.txt', paths: ['a.txt', 'none.txt'], 'list_directory.path': '.', 'list_directory_with_sizes.path': '.', 'directory_tree.path': '.',
            'search_files.path': '.', pattern: '*.txt', 'write_file.path': 'c.txt', 'create_directory.path': 'd', source: 'a.txt', destination: 'e.txt',
            edits: [{ oldText: 'one', newText: 'uno' }]
        },
        varies: ['get_file_info']
    },
    { package: '@modelcontextprotocol/server-memory@2026.8.31', env: folder => ({ MEMORY_FILE_PATH: join(folder, 'memory.json') }) },
    { package: '@modelcontextprotocol/server-sequential-thinking@2026.8.31' },
    {
        package: '@modelcontextprotocol/server-everything@2026.8.31',
        args: ['stdio'],
        known: { duration: 0.1, steps: 2 },
        without: {
            'gzip-file-as-resource': 'loads from the network',
            'toggle-simulated-logging': 'sends messages from time to time',
            'toggle-subscriber-updates': 'sends messages from time to time'
        },
        varies: ['get-env']
    },
    // It hands serveStdio a transport around the SDK's own.
    { package: '@upstash/context7-mcp@4.1.1', how: CARRIED },
    { package: '@antv/mcp-server-chart@0.9.10', isListedOnly: true },
    { package: '@eslint/mcp@0.3.13', prepare: script, known: { filePaths: ['a.js'] } },
    {
        package: 'mcp-server-code-runner@0.1.8',
        known: { code: 'console.log(6 * 7)', languageId: 'javascript' }
    },
    { package: '@circleci/mcp-server-circleci@0.20.0', isListedOnly: true },
    { package: '@cyanheads/pubmed-mcp-server@2.7.4', isListedOnly: true },
    { package: '@magicuidesign/mcp@2.0.0', isListedOnly: true },
    { package: '@mui/mcp@0.1.5', isListedOnly: true },
    { package: 'tavily-mcp@0.2.22', isListedOnly: true },
    { package: '@browsermcp/mcp@0.1.3', isListedOnly: true },
    { package: '@h1deya/mcp-server-weather@0.1.3', isListedOnly: true },
    { package: '@notionhq/notion-mcp-server@2.5.2', how: BUNDLED, isListedOnly: true },
    { package: '@playwright/mcp@0.0.83', how: BUNDLED, isListedOnly: true },
    { package: 'chrome-devtools-mcp@1.11.0', how: BUNDLED, isListedOnly: true },
    { package: '@cyanheads/git-mcp-server@2.15.3', how: BUNDLED, isListedOnly: true },
    { package: '@kimtaeyoon83/mcp-server-youtube-transcript@0.1.1', how: BUNDLED, isListedOnly: true }
];

export const nameOf = ({ package: spec }) => spec.slice(0, spec.lastIndexOf('@'));
