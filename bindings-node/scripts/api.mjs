// The package's public types as one report, `api.d.ts`: `node scripts/api.mjs` writes it, from the declarations in `dist`.
// `test/api.test.mjs` compares the committed report with the build, so that no change of the public types goes unseen.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const folder = fileURLToPath(new URL('..', import.meta.url));
const ENTRIES = { mcpbolt: 'index', 'mcpbolt/sdk': 'sdk/index', 'mcpbolt/engine': 'engine/index', 'mcpbolt/testing': 'testing' };
export const path = `${folder}api.d.ts`;

/** The report: the names that each entry exports, then every declaration that these reach, without comments. */
export function report() {
    const files = Object.values(ENTRIES).map(file => `${folder}dist/${file}.d.ts`);
    const program = ts.createProgram(files, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.Node16, lib: ['lib.es2023.d.ts'], types: ['node'] });
    const checker = program.getTypeChecker();
    const printer = ts.createPrinter({ removeComments: true });
    /** The declarations found so far, and their texts. */
    const found = new Map();
    const resolved = symbol => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
    const visit = node => {
        if (ts.isIdentifier(node)) reach(checker.getSymbolAtLocation(node));
        ts.forEachChild(node, visit);
    };
    const reach = symbol => {
        for (const declaration of (symbol && resolved(symbol).declarations) ?? []) {
            const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
            const file = relative(folder, statement.getSourceFile().fileName);
            if (!file.startsWith('dist') || !ts.isSourceFile(statement.parent) || found.has(statement)) continue;
            found.set(statement, printer.printNode(ts.EmitHint.Unspecified, statement, statement.getSourceFile()));
            visit(statement);
        }
    };
    const exported = files.map(file => checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file))));
    exported.flat().forEach(reach);
    const entries = Object.keys(ENTRIES).map((entry, at) => `// ${entry}: ${exported[at].map(({ name }) => name).sort().join(', ')}`);
    return `// The public types of this package, written by scripts/api.mjs.\n${[...entries, '', ...[...found.values()].sort()].join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(path, report());
