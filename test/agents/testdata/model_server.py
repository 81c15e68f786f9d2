#!/usr/bin/env python3
"""Scripted model server: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini generateContent.

    modelserver.py PORT LOGFILE [--host 127.0.0.1]

A client's base URL is  http://127.0.0.1:PORT/s/<ID>/<PLAN>[;opt=val...][/v1]
  <ID>    any word; counters are kept by it
  <PLAN>  what the model does:
     climb      pawl Improve world: read work/n, raise it by 1, say so (roles: ideator, planner, reviewer, fixer understood)
     deliver    pawl Deliver world: writer makes work/n 41, fixer makes it 42, reviewer approves, planner plans
     shell      runs cmd (opt cmd=urlencoded) once, then text
     sleep      first tool call is a shell that never ends (marker: sleep 9<ID digits>)
     loop       endless shell calls
     text       says text only
     parallel   3 shell calls in one answer, then climb
     subagent   (claude) Task tool, then climb
     nest       an agent of the program's own, which calls the shell twice, then climb
  opts:
     anyway=NAME  plan shell: the first call is of the tool NAME, whether it is offered or not
     lasts=SECONDS  as reset, from the first request
     file=work/n  cwd=/abs (else guessed from the request)  cmd=<urlencoded>  n=<how many loop calls before text>
     fault=KIND  at=<first main request, 1-based>  times=<how many; default all>  ra=<retry-after s>  reset=<epoch s: until then>
        KIND: e400 e401 e402 e403 e404 e413 e429 e500 e503 e529 cut hang slow drip garbage empty sse-error sub429 quota
     cost knobs: in=1200 out=80 cached=1000 think=20
     hidden=1   side requests (no tools) count apart anyway
GET /_stats  -> all counters (JSON);  GET /_stats/<ID>
Usage of every answered main request is summed into stats: in, out, cached, tools.
"""
import sys, json, time, re, threading, os, urllib.parse, gzip
from http.server import ThreadingHTTPServer, BaseHTTPRequestHandler
PORT = int(sys.argv[1]); LOG = sys.argv[2]
lock = threading.Lock(); stats = {}; seq = [0]

def log(o):
    with lock, open(LOG, 'a') as f: f.write(json.dumps(o) + '\n')

def st(i):
    with lock:
        return stats.setdefault(i, dict(main=0, side=0, tries=0, faults=0, **{'in': 0, 'out': 0, 'cached': 0, 'side_in': 0, 'side_out': 0, 'tools': 0, 'disc': 0, 'first': time.time(), 'last': 0, 'times': [], 'toolnames': [], 'offered': None, 'auth': None, 'model': None, 'roles': []}))

def texts(o):
    """all user-ish text in a request, flattened"""
    out = []
    def walk(x):
        if isinstance(x, str): out.append(x)
        elif isinstance(x, list): [walk(y) for y in x]
        elif isinstance(x, dict):
            for k, v in x.items():
                if k in ('text', 'content', 'input', 'system', 'instructions', 'messages', 'contents', 'parts', 'systemInstruction', 'output'): walk(v)
    walk(o); return '\n'.join(out)

SH = (('Bash', 'command'), ('exec_command', 'cmd'), ('run_shell_command', 'command'), ('bash', 'command'), ('shell', 'command'), ('local_shell', 'command'), ('execute_command', 'command'), ('run_commands', 'commands'))

def shell(T, cmd, long=False):
    for name, arg in SH:
        if name in T:
            if name == 'exec_command': return ('tool', name, {'cmd': cmd, **({'yield_time_ms': 290000} if long else {})})
            if name == 'shell': return ('tool', name, {'command': ['sh', '-c', cmd]})
            if name == 'run_commands': return ('tool', name, {'commands': [cmd]})
            a = {'command': cmd}
            if name == 'Bash': a.update(description='work', **({'timeout': 590000} if long else {}))
            if name == 'run_shell_command': a.update(description='work', is_background=False)
            if name == 'bash': a.update(description='work', **({'timeout': 590000} if long and 'todowrite' in T else {}))
            if name == 'execute_command': a.update(requires_approval=False)
            return ('tool', name, a)
    return None

def read(T, cwd, f):
    p = cwd + '/' + f
    if 'Read' in T: return ('tool', 'Read', {'file_path': p})
    if 'read_file' in T: return ('tool', 'read_file', {'file_path': p, 'path': p})
    if 'read' in T: return ('tool', 'read', {'filePath': p, 'path': p})
    return shell(T, 'cat ' + f)

def edit(T, cwd, f, old, new):
    p = cwd + '/' + f
    if 'Edit' in T: return ('tool', 'Edit', {'file_path': p, 'old_string': old, 'new_string': new})
    patch = '*** Begin Patch\n*** Update File: %s\n@@\n-%s\n+%s\n*** End Patch\n' % (f, old, new)
    if 'apply_patch' in T and ('exec_command' in T or 'shell' in T): return ('custom', 'apply_patch', patch)
    if 'exec_command' in T: return ('tool', 'exec_command', {'cmd': "apply_patch <<'P'\n%sP\n" % patch})
    if 'replace' in T: return ('tool', 'replace', {'file_path': p, 'old_string': old, 'new_string': new, 'instruction': 'raise it'})
    if 'edit' in T and 'read_file' in T: return ('tool', 'edit', {'file_path': p, 'old_string': old, 'new_string': new})
    if 'edit' in T and ('todowrite' in T or 'webfetch' in T or 'glob' in T): return ('tool', 'edit', {'filePath': p, 'oldString': old, 'newString': new})
    if 'edit' in T: return ('tool', 'edit', {'path': p, 'edits': [{'oldText': old, 'newText': new}]})
    if 'apply_patch' in T: return ('tool', 'apply_patch', {'patchText': patch, 'input': patch})
    return shell(T, "printf '%%s\\n' %s > %s" % (new, f))

def role(text):
    # the last brief decides (resumed sessions carry older ones)
    best = ('', -1)
    for name, mark in (('ideator', 'Propose exactly ONE focused change'), ('writer', 'Make exactly ONE focused change'), ('writer', 'Make exactly this one change'),
                       ('writer', 'Write the change that reaches the goal'), ('fixer', 'The tests fail. Find the cause'), ('reviewer', 'Review the proposal below'), ('planner', 'Write a plan for reaching the goal')):
        i = text.rfind(mark)
        if i > best[1]: best = (name, i)
    return best[0]

def plan(rq):
    """rq: dict tools, step, text, results(list of str), opt, plan, id -> list of actions"""
    T, step, o = set(rq['tools']), rq['step'], rq['opt']
    f = o.get('file', 'work/n'); cwd = o.get('cwd') or rq['cwd']
    r = role(rq['text']); p = rq['plan']
    fin = ('text', o.get('say') and urllib.parse.unquote(o['say']) or 'raise the number by one\n\nThat should do.')
    if p == 'text': return [fin]
    if r == 'ideator' and p != 'loop': return [('text', 'raise the number')]
    if r == 'planner': return [('text', '# Plan\n\n1. Change work/n to 42.\n2. Run the tests.\n')]
    if r == 'reviewer':
        m = re.findall(r'APPROVED ([0-9a-f]{8,64})', rq['text'])
        crit = re.findall(r'^(\d+)\. ', rq['text'].split('An approval counts only')[-1], re.M) if 'An approval counts only' in rq['text'] else []
        return [('text', 'Looked at it.\n\n%s\nAPPROVED %s\n' % ('\n'.join('- [x] %s: the test shows it' % c for c in crit), m[-1] if m else ''))]
    if p == 'loop' and step < int(o.get('n', 10**9)):
        a = shell(T, 'echo loop %d' % step) or read(T, cwd, f); return [a]
    if p == 'sleep' and o.get('flag') and os.path.exists(urllib.parse.unquote(o['flag'])): p = 'climb'
    if p == 'sleep':
        mark = '9' + re.sub(r'\D', '', rq['id'])[-8:].rjust(6, '0')
        if step == 0: return [shell(T, o.get('cmd') and urllib.parse.unquote(o['cmd']) or 'echo spoiled > work/other; (setsid sleep %s1 >/dev/null 2>&1 &); nohup sleep %s2 >/dev/null 2>&1 & sleep %s3' % (mark, mark, mark), True)]
        return [fin]
    if p == 'shell':
        if step == 0 and o.get('anyway'): return [('tool', o['anyway'], {'command': urllib.parse.unquote(o['cmd']), 'description': 'work'})]
        if step == 0:
            a = shell(T, urllib.parse.unquote(o.get('cmd', 'echo hi')))
            return [a or ('text', 'no shell tool is offered: ' + ','.join(sorted(T)))]
        if o.get('then') != 'climb': return [fin]
        step -= 1
    if p == 'outside':
        q = urllib.parse.unquote(o.get('path', 'outside.txt'))
        if step == 0:
            for n, a in (('Write', {'file_path': q, 'content': 'x\n'}), ('write_file', {'file_path': q, 'content': 'x\n'}), ('write', {'filePath': q, 'path': q, 'content': 'x\n'})):
                if n in T: return [('tool', n, a)]
            return [shell(T, 'echo x > ' + q)]
        return [fin]
    if p == 'parallel':
        if step == 0: return [shell(T, 'echo one'), shell(T, 'echo two'), shell(T, 'echo three')]
        step -= 3
    if p == 'nest':  # main -> subagent, which calls the shell twice; then main climbs
        q = 'NESTED1 look at it'
        if q in rq['text'] and not r: return [shell(T, 'echo nested %d' % step)] if step < 2 else [('text', 'looked')]
        for n, a in (('Agent', {'description': 'look', 'prompt': q, 'subagent_type': 'general-purpose', 'run_in_background': False}), ('agent', {'description': 'look', 'prompt': q, 'subagent_type': 'general-purpose'}),
                     ('task', {'description': 'look', 'prompt': q, 'subagent_type': 'general'}), ('spawn_agent', {'message': q}), ('invoke_agent', {'agent_name': 'generalist', 'prompt': q})):
            if step == 0 and n in T: return [('tool', n, a)]
        step -= 1; p = 'climb'
    if p == 'nestloop':  # main -> subagent -> its subagent, which calls Bash for ever
        deep = int((re.findall(r'NESTED(\d)', rq['text']) or ['0'])[-1])
        if deep < int(o.get('depth', 2)) and step == 0 and 'Agent' in T: return [('tool', 'Agent', {'description': 'look', 'prompt': 'NESTED%d look at it' % (deep + 1), 'subagent_type': 'general-purpose', 'run_in_background': False})]
        if deep == int(o.get('depth', 2)): return [shell(T, 'echo nested %d' % step)]
        return [fin]
    if p == 'subagent':
        if 'Task' in T or 'Agent' in T:
            if step == 0: return [('tool', 'Agent' if 'Agent' in T else 'Task', {'description': 'look', 'prompt': 'SUBAGENT please look at work/n', 'subagent_type': 'general-purpose'})]
            step -= 1
        elif 'SUBAGENT' in rq['text'] and step < 2: return [shell(T, 'echo sub %d' % step)]
        elif 'SUBAGENT' in rq['text']: return [('text', 'looked')]
    if p == 'climb' or p in ('shell', 'parallel', 'subagent', 'loop'):
        if step <= 0: return [read(T, cwd, f)]
        if step == 1:
            last = (rq['results'] or [''])[-1].split('Output:\n')[-1].split('<content>')[-1]
            old = '10'
            for line in last.splitlines():
                m = re.match(r'^(?:\s*\d+\s*[\t→|:]\s*(?:[0-9a-f]{2,4}\|)?)?\s*(\d+)\s*$', line)
                if m: old = m.group(1); break
            return [edit(T, cwd, f, old, str(int(old) + 1))]
        return [fin]
    if p == 'deliver':
        want = '42' if r == 'fixer' else '41'
        cur = o.get('cur') or ('41' if r == 'fixer' else '10')
        if step == 0: return [read(T, cwd, f)]
        if step == 1: return [edit(T, cwd, f, cur, want)]
        return [('text', 'make the number %s' % want)]
    return [fin]

class H(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def js(self, code, o, h={}):
        b = json.dumps(o).encode(); self.send_response(code)
        self.send_header('content-type', 'application/json'); self.send_header('content-length', str(len(b)))
        for k, v in h.items(): self.send_header(k, str(v))
        self.end_headers(); self.wfile.write(b)
    def sse(self, h={}):
        self.send_response(200); self.send_header('content-type', 'text/event-stream'); self.send_header('cache-control', 'no-cache')
        self.send_header('connection', 'close'); self.close_connection = True
        for k, v in h.items(): self.send_header(k, str(v))
        self.end_headers()
    def ev(self, o, name=None):
        s = (('event: %s\n' % name) if name else '') + 'data: ' + (o if isinstance(o, str) else json.dumps(o)) + '\n\n'
        self.wfile.write(s.encode()); self.wfile.flush()
    def do_HEAD(self): self.send_response(200); self.send_header('content-length', '0'); self.end_headers()
    def do_GET(self):
        if self.path.startswith('/_stats'):
            i = self.path[8:]
            with lock: return self.js(200, stats.get(i, {}) if i else stats)
        log({'t': time.time(), 'm': 'GET', 'path': self.path, 'up': self.headers.get('upgrade')})
        if 'models' in self.path: return self.js(200, {'object': 'list', 'data': [{'id': 'm1', 'object': 'model'}], 'models': []})
        self.js(404, {'error': {'message': 'no'}})
    def do_POST(self):
        try: self.post()
        except (BrokenPipeError, ConnectionResetError) as e:
            log({'t': time.time(), 'disc': str(e), 'path': self.path})
            m = re.match(r'^/s/([^/]+)/', self.path)
            if m: st(m.group(1))['disc'] += 1
    def post(self):
        ln = int(self.headers.get('content-length') or 0); raw = self.rfile.read(ln)
        if self.headers.get('transfer-encoding') == 'chunked':
            raw = b''
            while True:
                l = int(self.rfile.readline().strip() or b'0', 16)
                if l == 0: self.rfile.readline(); break
                raw += self.rfile.read(l); self.rfile.readline()
        if self.headers.get('content-encoding') == 'gzip': raw = gzip.decompress(raw)
        try: b = json.loads(raw or b'{}')
        except Exception as e: b = {}; log({'bad': str(e), 'enc': self.headers.get('content-encoding')})
        m = re.match(r'^/s/([^/]+)/([^/]+)(/.*)$', self.path)
        if not m: log({'unrouted': self.path}); return self.js(404, {'error': {'message': 'no scenario in ' + self.path}})
        sid, pl, path = m.groups(); path = path.split('?')[0]
        parts = [urllib.parse.unquote(x) for x in pl.split(';')]; opt = dict(x.split('=', 1) for x in parts[1:] if '=' in x)
        s = st(sid)
        if 'count_tokens' in path: return self.js(200, {'input_tokens': 1000})
        if 'countTokens' in path: return self.js(200, {'totalTokens': 1000})
        rq = self.understand(b, path); rq.update(opt=opt, plan=parts[0], id=sid)
        side = not rq['tools'] and parts[0] != 'nestloop' and parts[0] != 'text' and role(rq['text']) == ''
        if 'SUGGESTION MODE' in rq['text'][-3000:] or 'You are a title generator' in rq['text']: side = True # whatever brief it quotes
        with lock:
            seq[0] += 1; i = seq[0]; s['tries'] += 1; s['last'] = time.time()
            k = 'side' if side else 'main'
            s['_' + k] = s.get('_' + k, 0) + 1; nth = s['_' + k]
            if not side: s['times'].append(round(time.time() - s['first'], 2)); s['offered'] = rq['tools']
            s['model'] = rq['model']; s['auth'] = (self.headers.get('x-api-key') or self.headers.get('authorization') or self.headers.get('x-goog-api-key') or '')[:24]
            rr = role(rq['text'])
            if rr and (not s['roles'] or s['roles'][-1] != rr): s['roles'].append(rr)
        log({'i': i, 't': time.time(), 'id': sid, 'plan': pl, 'path': path, 'model': rq['model'], 'step': rq['step'], 'side': side, 'nth': nth, 'cwd': rq['cwd'], 'role': rr, 'tools': rq['tools'], 'stream': rq['stream'], 'keys': sorted(b), 'last': (rq['results'] or [''])[-1][-300:], **({'body': b} if os.environ.get('FULL') else {})})
        if opt.get('lasts'): opt['reset'] = s.setdefault('reset', time.time() + float(opt['lasts']))
        fault = opt.get('fault')
        if fault and not side and nth >= int(opt.get('at', 1)) and nth < int(opt.get('at', 1)) + int(opt.get('times', 10**9)) and not (opt.get('reset') and time.time() > float(opt['reset'])):
            s['faults'] += 1
            if self.fault(fault, opt, path, rq, i): return
            fault_soft = fault
        else: fault_soft = None
        u = {'in': int(opt.get('in', 1200)), 'out': int(opt.get('out', 80)), 'cached': int(opt.get('cached', 0)), 'think': int(opt.get('think', 0))}
        acts = [('text', 'Scripted title')] if side else [a for a in plan(rq) if a]
        if side and not rq['tools']:
            acts = [('text', self.sidetext(b))]
        with lock:
            if side: s['side'] += 1; s['side_in'] += u['in']; s['side_out'] += u['out'] + u['think']
            elif fault_soft not in ('cut', 'drip'):
                s['main'] += 1; s['in'] += u['in']; s['out'] += u['out'] + u['think']; s['cached'] += u['cached']
                for a in acts:
                    if a[0] != 'text': s['tools'] += 1; s['toolnames'].append(a[1])
            else: s['cutcalls'] = s.get('cutcalls', 0) + 1
        if opt.get('delay') and not side: time.sleep(float(opt['delay']))
        rq.update(u=u, acts=acts, i=i, soft=fault_soft, b=b)
        {'anthropic': self.anthropic, 'responses': self.oairesp, 'chat': self.chat, 'gemini': self.gemini}[rq['api']](rq, path)
    def sidetext(self, b):
        gc = b.get('generationConfig') or {}; sch = json.dumps(gc.get('responseJsonSchema') or gc.get('responseSchema') or {})
        if 'next_speaker' in sch: return json.dumps({'reasoning': 'done', 'next_speaker': 'user'})
        if 'model_choice' in sch: return json.dumps({'reasoning': 'simple', 'model_choice': 'flash'})
        if 'complexity' in sch: return json.dumps({'complexity_reasoning': 'simple', 'complexity_score': 10})
        return 'Scripted title'
    def understand(self, b, path):
        tools = []; step = 0; results = []; api = None
        def txt(c):
            if isinstance(c, str): return c
            if isinstance(c, list): return '\n'.join(txt(x) for x in c)
            if isinstance(c, dict): return txt(c.get('text') or c.get('content') or c.get('output') or c.get('result') or '')
            return ''
        if path.endswith('/messages'):
            api = 'anthropic'; tools = [t.get('name') for t in b.get('tools') or []]
            for m in b.get('messages', []):
                c = m.get('content')
                if m.get('role') == 'user' and isinstance(c, list):
                    had = [p for p in c if p.get('type') == 'tool_result']
                    for p in had: step += 1; results.append(txt(p.get('content')))
                    fresh = [p for p in c if p.get('type') == 'text' and role(p.get('text', ''))]
                    if fresh and not had: step = 0; results = []
                elif m.get('role') == 'user' and isinstance(c, str) and role(c): step = 0; results = []
        elif path.endswith('/responses'):
            api = 'responses'; tools = [u.get('name') or u.get('type') for t in b.get('tools') or [] for u in t.get('tools') or [t]]
            for it in (b.get('input') if isinstance(b.get('input'), list) else []):
                if it.get('type') in ('function_call_output', 'custom_tool_call_output', 'local_shell_call_output'): step += 1; results.append(txt(it.get('output')))
                elif it.get('role') == 'user' and role(txt(it.get('content'))): step = 0; results = []
        elif path.endswith('/chat/completions'):
            api = 'chat'; tools = [(t.get('function') or {}).get('name') for t in b.get('tools') or []]
            for m in b.get('messages', []):
                if m.get('role') == 'tool': step += 1; results.append(txt(m.get('content')))
                elif m.get('role') == 'user' and role(txt(m.get('content'))): step = 0; results = []
        elif 'enerateContent' in path:
            api = 'gemini'
            for t in b.get('tools') or []:
                for d in t.get('functionDeclarations') or []: tools.append(d.get('name'))
            for c in b.get('contents', []):
                for p in c.get('parts', []):
                    if 'functionResponse' in p: step += 1; results.append(txt((p['functionResponse'].get('response') or {})))
                    elif 'text' in p and c.get('role') == 'user' and role(p['text']): step = 0; results = []
        text = texts(b)
        m = re.findall(r'(/[^\s"\\<>`\']*?/(?:desk|trees/d-[0-9a-f]+(?:\.\d+)?))(?![\w-])', text) or re.findall(r'(?:[Ww]orking directory|<cwd>|working in the directory)[:\s]*`?(/[^\s<`]+)', text)
        m = [x for x in m if '/.gemini/' not in x and '/.qwen/' not in x and '/.claude/' not in x]
        return dict(api=api, tools=[t for t in tools if t], step=step, results=results, text=text, cwd=m[0] if m else os.environ.get('SCRATCH', '/tmp'), model=b.get('model') or (re.search(r'models/([^:]+)', path) or [None, None])[1], stream=bool(b.get('stream')) or 'stream' in path)
    # --- faults -------------------------------------------------------------------------------
    def fault(self, kind, opt, path, rq, i):
        api = rq['api']; ra = opt.get('ra'); h = {}
        if ra: h['retry-after'] = ra
        reset = float(opt.get('reset') or time.time() + float(ra or 20))
        if kind == 'hang': time.sleep(float(opt.get('for', 900))); return True
        if kind == 'slow': time.sleep(float(opt.get('for', 5))); return False
        if kind in ('cut', 'drip'): return False
        if kind == 'empty': self.sse(); return True
        if kind == 'garbage': self.sse(); self.wfile.write(b'data: {not json\n\n\x00\xff\xfe'); return True
        if kind == 'reset': self.connection.close(); raise ConnectionResetError('scripted')
        if kind == 'sub429':  # a subscription's limit
            h.update({'anthropic-ratelimit-unified-status': 'rejected', 'anthropic-ratelimit-unified-reset': int(reset), 'anthropic-ratelimit-unified-representative-claim': 'five_hour', 'anthropic-ratelimit-unified-5h-status': 'rejected', 'anthropic-ratelimit-unified-5h-reset': int(reset), 'anthropic-ratelimit-unified-5h-utilization': '1.0', 'anthropic-ratelimit-unified-overage-status': 'rejected', 'anthropic-ratelimit-unified-overage-disabled-reason': 'org_level_disabled', 'retry-after': int(max(1, reset - time.time())), 'x-should-retry': 'true'})
            if api == 'responses': self.js(429, {'error': {'type': 'usage_limit_reached', 'message': 'The usage limit has been reached', 'plan_type': 'plus', 'resets_at': int(reset), 'resets_in_seconds': int(max(1, reset - time.time()))}}, h)
            elif api == 'gemini': self.js(429, {'error': {'code': 429, 'message': 'You exceeded your current quota. Please retry in %ds.' % (reset - time.time()), 'status': 'RESOURCE_EXHAUSTED', 'details': [{'@type': 'type.googleapis.com/google.rpc.QuotaFailure', 'violations': [{'quotaMetric': 'generativelanguage.googleapis.com/generate_requests_per_model_per_day', 'quotaId': 'GenerateRequestsPerDayPerProjectPerModel'}]}, {'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '%ds' % max(1, reset - time.time())}]}}, h)
            else: self.js(429, {'type': 'error', 'error': {'type': 'rate_limit_error', 'message': "This request would exceed your account's rate limit. Please try again later.", 'code': 'rate_limit_exceeded'}}, h)
            return True
        if kind == 'quota':
            self.js(429, {'type': 'error', 'error': {'type': 'insufficient_quota', 'code': 'insufficient_quota', 'message': 'You exceeded your current quota, please check your plan and billing details.', 'status': 'RESOURCE_EXHAUSTED'}}, h); return True
        if kind == 'sse-error':
            self.sse()
            if api == 'anthropic': self.ev({'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}, 'error')
            elif api == 'responses':
                self.ev({'type': 'response.created', 'sequence_number': 0, 'response': {'id': 'r%d' % i, 'object': 'response', 'status': 'in_progress', 'output': []}}, 'response.created')
                self.ev({'type': 'response.failed', 'sequence_number': 1, 'response': {'id': 'r%d' % i, 'object': 'response', 'status': 'failed', 'output': [], 'error': {'code': 'rate_limit_exceeded', 'message': 'Rate limit reached for m1 on tokens per min (TPM): Limit 30000. Please try again in %ss.' % (ra or 5)}}}, 'response.failed')
            else: self.ev({'error': {'message': 'Overloaded', 'code': 503, 'status': 'UNAVAILABLE'}})
            return True
        code = int(kind[1:]); names = {400: ('invalid_request_error', 'INVALID_ARGUMENT'), 401: ('authentication_error', 'UNAUTHENTICATED'), 402: ('billing_error', 'FAILED_PRECONDITION'), 403: ('permission_error', 'PERMISSION_DENIED'), 404: ('not_found_error', 'NOT_FOUND'), 413: ('request_too_large', 'INVALID_ARGUMENT'), 429: ('rate_limit_error', 'RESOURCE_EXHAUSTED'), 500: ('api_error', 'INTERNAL'), 503: ('api_error', 'UNAVAILABLE'), 529: ('overloaded_error', 'UNAVAILABLE')}
        t, g = names.get(code, ('api_error', 'UNKNOWN')); msg = {401: 'invalid x-api-key', 402: 'Your credit balance is too low to access the API'}.get(code, 'scripted %d' % code)
        if code == 429: msg = 'Rate limit reached. Please try again in %ss.' % (ra or 20)
        e = {'type': t, 'message': msg}
        if api in ('responses', 'chat'): e['code'] = 'rate_limit_exceeded' if code == 429 else t
        if api == 'gemini':
            e = {'code': code, 'message': msg, 'status': g}
            if code == 429 and ra: e['details'] = [{'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': ra + 's'}]
        self.js(code, {'type': 'error', 'error': e}, h); return True
    def drip(self):  # an answer that goes on and on, and never ends
        for _ in range(3000): self.wfile.write(b': drip\n\n'); self.wfile.flush(); time.sleep(0.3)
    # --- answers ------------------------------------------------------------------------------
    def anthropic(self, rq, path):
        u, i, acts = rq['u'], rq['i'], rq['acts']
        fresh = max(0, u['in'] - u['cached']); use = {'input_tokens': fresh, 'cache_creation_input_tokens': 0, 'cache_read_input_tokens': u['cached'], 'output_tokens': 1}
        out = u['out'] + u['think']; blks = []
        for k, a in enumerate(acts): blks.append({'type': 'text', 'text': a[1]} if a[0] == 'text' else {'type': 'tool_use', 'id': 'toolu_%06d_%d' % (i, k), 'name': a[1], 'input': a[2]})
        stop = 'tool_use' if any(a[0] != 'text' for a in acts) else 'end_turn'
        if not rq['stream']: return self.js(200, {'id': 'msg_%06d' % i, 'type': 'message', 'role': 'assistant', 'model': rq['model'], 'content': blks, 'stop_reason': stop, 'stop_sequence': None, 'usage': dict(use, output_tokens=out)})
        self.sse()
        self.ev({'type': 'message_start', 'message': {'id': 'msg_%06d' % i, 'type': 'message', 'role': 'assistant', 'model': rq['model'], 'content': [], 'stop_reason': None, 'stop_sequence': None, 'usage': use}}, 'message_start')
        for k, bl in enumerate(blks):
            if bl['type'] == 'text':
                self.ev({'type': 'content_block_start', 'index': k, 'content_block': {'type': 'text', 'text': ''}}, 'content_block_start')
                self.ev({'type': 'content_block_delta', 'index': k, 'delta': {'type': 'text_delta', 'text': bl['text']}}, 'content_block_delta')
            else:
                self.ev({'type': 'content_block_start', 'index': k, 'content_block': dict(bl, input={})}, 'content_block_start')
                self.ev({'type': 'content_block_delta', 'index': k, 'delta': {'type': 'input_json_delta', 'partial_json': json.dumps(bl['input'])}}, 'content_block_delta')
            if rq['soft'] == 'cut': return
            if rq['soft'] == 'drip': self.drip()
            self.ev({'type': 'content_block_stop', 'index': k}, 'content_block_stop')
        self.ev({'type': 'message_delta', 'delta': {'stop_reason': stop, 'stop_sequence': None}, 'usage': {'output_tokens': out}}, 'message_delta')
        self.ev({'type': 'message_stop'}, 'message_stop')
    def oairesp(self, rq, path):
        u, i = rq['u'], rq['i']; items = []
        for k, a in enumerate(rq['acts']):
            x = '%d_%d' % (i, k)
            if a[0] == 'text': items.append({'type': 'message', 'id': 'msg_' + x, 'role': 'assistant', 'status': 'completed', 'content': [{'type': 'output_text', 'text': a[1], 'annotations': []}]})
            elif a[0] == 'custom': items.append({'type': 'custom_tool_call', 'id': 'ctc_' + x, 'call_id': 'call_' + x, 'name': a[1], 'input': a[2], 'status': 'completed'})
            else: items.append({**({'namespace': 'multi_agent_v1'} if a[1] == 'spawn_agent' else {}), 'type': 'function_call', 'id': 'fc_' + x, 'call_id': 'call_' + x, 'name': a[1], 'arguments': json.dumps(a[2]), 'status': 'completed'})
        base = {'id': 'resp_%06d' % i, 'object': 'response', 'created_at': int(time.time()), 'model': rq['model'], 'status': 'in_progress', 'output': []}
        out = u['out'] + u['think']
        usage = {'input_tokens': u['in'], 'input_tokens_details': {'cached_tokens': u['cached']}, 'output_tokens': out, 'output_tokens_details': {'reasoning_tokens': u['think']}, 'total_tokens': u['in'] + out}
        done = dict(base, status='completed', output=items, usage=usage)
        if not rq['stream']: return self.js(200, done)
        self.sse(); n = 0
        self.ev({'type': 'response.created', 'sequence_number': n, 'response': base}, 'response.created')
        if rq['soft'] == 'cut': return
        for k, it in enumerate(items):
            n += 1; self.ev({'type': 'response.output_item.added', 'sequence_number': n, 'output_index': k, 'item': dict(it, status='in_progress')}, 'response.output_item.added')
            if it['type'] == 'message':
                n += 1; self.ev({'type': 'response.output_text.delta', 'sequence_number': n, 'item_id': it['id'], 'output_index': k, 'content_index': 0, 'delta': it['content'][0]['text']}, 'response.output_text.delta')
            if rq['soft'] == 'drip': self.drip()
            n += 1; self.ev({'type': 'response.output_item.done', 'sequence_number': n, 'output_index': k, 'item': it}, 'response.output_item.done')
        self.ev({'type': 'response.completed', 'sequence_number': n + 1, 'response': done}, 'response.completed')
    def chat(self, rq, path):
        u, i = rq['u'], rq['i']; out = u['out'] + u['think']
        base = {'id': 'chatcmpl-%d' % i, 'object': 'chat.completion.chunk', 'created': int(time.time()), 'model': rq['model']}
        usage = {'prompt_tokens': u['in'], 'completion_tokens': out, 'total_tokens': u['in'] + out, 'prompt_tokens_details': {'cached_tokens': u['cached']}, 'completion_tokens_details': {'reasoning_tokens': u['think']}}
        text = ''.join(a[1] for a in rq['acts'] if a[0] == 'text') or None
        calls = [{'index': k, 'id': 'call_%d_%d' % (i, k), 'type': 'function', 'function': {'name': a[1], 'arguments': json.dumps(a[2])}} for k, a in enumerate(x for x in rq['acts'] if x[0] == 'tool')]
        msg = {'role': 'assistant', 'content': text, **({'tool_calls': calls} if calls else {})}; fin = 'tool_calls' if calls else 'stop'
        if not rq['stream']: return self.js(200, dict(base, object='chat.completion', choices=[{'index': 0, 'message': msg, 'finish_reason': fin}], usage=usage))
        self.sse()
        self.ev(dict(base, choices=[{'index': 0, 'delta': msg, 'finish_reason': None}]))
        if rq['soft'] == 'cut': return
        if rq['soft'] == 'drip': self.drip()
        self.ev(dict(base, choices=[{'index': 0, 'delta': {}, 'finish_reason': fin}]))
        self.ev(dict(base, choices=[], usage=usage)); self.ev('[DONE]')
    def gemini(self, rq, path):
        u, i = rq['u'], rq['i']; parts = []
        for k, a in enumerate(rq['acts']): parts.append({'text': a[1]} if a[0] == 'text' else {'functionCall': {'name': a[1], 'args': a[2], 'id': 'fc%d_%d' % (i, k)}, 'thoughtSignature': 'c2ln'})
        um = {'promptTokenCount': u['in'], 'candidatesTokenCount': u['out'], 'totalTokenCount': u['in'] + u['out'] + u['think']}
        if u['cached']: um['cachedContentTokenCount'] = u['cached']
        if u['think']: um['thoughtsTokenCount'] = u['think']
        r = {'candidates': [{'content': {'role': 'model', 'parts': parts}, 'finishReason': 'STOP', 'index': 0}], 'usageMetadata': um, 'modelVersion': rq['model'], 'responseId': 'r%d' % i}
        if not rq['stream']: return self.js(200, r)
        self.sse()
        if rq['soft'] == 'cut': return
        if rq['soft'] == 'drip': self.ev({'candidates': [{'content': {'role': 'model', 'parts': [{'text': 'rai'}]}, 'index': 0}]}); self.drip()
        self.ev(r)
ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer.request_queue_size = 128
server = ThreadingHTTPServer(('127.0.0.1', PORT), H)
print(server.server_address[1], flush=True)
server.serve_forever()
