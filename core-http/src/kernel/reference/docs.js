// Shows the OpenAPI document that the page names. Sending requests is disabled, so no credentials are asked for.

const reference = document.getElementById('reference');
const hidden = () => () => null;

function showNotice(text) {
    const notice = document.createElement('p');
    notice.className = 'notice';
    notice.setAttribute('role', 'alert');
    notice.textContent = text;
    reference.replaceChildren(notice);
}

// Returns the path at the gateway, or at the service if the page has no prefixes.
function fullPath(path) {
    const prefixes = reference.dataset.prefixes.split(' ');
    const isBelow = prefix => path === prefix || path.startsWith(`${prefix}/`);
    return prefixes.some(isBelow) ? path : prefixes[0] + path;
}

async function show() {
    const response = await fetch(reference.dataset.document);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const spec = await response.json();
    // The document names no server. This page is at the root of the service, or of the gateway in front of it.
    spec.servers = [{ url: new URL('.', location.href).href.replace(/\/$/, '') }];
    const paths = Object.entries(spec.paths).map(([path, item]) => [fullPath(path), item]);
    spec.paths = Object.fromEntries(paths);
    SwaggerUIBundle({
        domNode: reference,
        spec,
        deepLinking: true,
        docExpansion: 'list',
        defaultModelsExpandDepth: -1,
        supportedSubmitMethods: [],
        validatorUrl: null,
        plugins: [{ wrapComponents: { authorizeBtn: hidden, authorizeOperationBtn: hidden } }],
    });
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const setScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', setScheme);
setScheme();
show().catch(error => showNotice(`The OpenAPI document cannot be shown (${error.message}). Reload the page to try again.`));
