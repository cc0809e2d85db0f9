import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate for localhost that vouches for itself, and its key: files. */
export function certificate() {
    const folder = mkdtempSync(join(tmpdir(), 'mcpbolt-tls-'));
    const tls = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
    const words = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
    const more = ['-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'subjectAltName=DNS:localhost', '-keyout', tls.key, '-out', tls.certificate];
    execFileSync('openssl', [...words.split(' '), ...more], { stdio: 'ignore' });
    return tls;
}
