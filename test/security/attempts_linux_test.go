package security_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// attempt is what a hostile agent tries to get at what is not its own, and the same through verify, which
// runs what it wrote. It is a script for bash, which succeeds where it was done, or a function. None does harm
// by that, since without a sandbox all of them do succeed. Scripts name nothing of the world but by what the
// agent was told: a path that the spec names can be read.
type attempt struct {
	name, script string
	try          func() error
	// call is the one that it takes: a kernel may be built without it.
	call uintptr
	// plants is what the agent does before; the attempt itself is then verify's alone.
	plants string
	// without is what comes of it where there is no sandbox, reached where nothing is said.
	without string
	// open says that root's commands can do it in bubblewrap's sandbox.
	open bool
}

const (
	lacking = 77        // the exit code of an attempt for which the machine lacks something
	nothing = "nothing" // there is nothing to try it on without a sandbox
)

// planted are places in which the user's programs, or verify's, would find what an agent leaves there.
var planted = []struct{ name, path string }{
	{"for npm", `$HOME/.npmrc`}, {"for yarn", `$HOME/.yarnrc.yml`}, {"for pip", `$HOME/.config/pip/pip.conf`}, {"for go", `$HOME/.config/go/env`},
	{"for cargo", `$HOME/.cargo/config.toml`}, {"for Maven", `$HOME/.m2/settings.xml`}, {"for Gradle", `$HOME/.gradle/init.gradle`}, {"for Bundler", `$HOME/.bundle/config`},
	{"for git", `$HOME/.gitconfig`}, {"for git, in its other place", `$HOME/.config/git/config`}, {"for ssh", `$HOME/.ssh/config`},
	{"that every Python loads", `$HOME/.local/lib/python3/site-packages/x.pth`}, {"that every bash reads", `$HOME/.bashrc`}, {"that every login shell reads", `$HOME/.profile`},
	{"that the desktop starts", `$HOME/.config/autostart/x.desktop`}, {"for systemd", `$HOME/.config/systemd/user/x.service`},
	{"in the PATH, named go", `$HOME/.local/bin/go`}, {"in the PATH, named as an installed tool", `$HOME/go/bin/golangci-lint`},
	{"as a hook for Claude Code", `$HOME/.claude/settings.json`}, {"as a program for Codex", `$HOME/.codex/config.toml`},
	{"in Go's build cache", `$GOCACHE/planted`}, {"in Go's modules", `$HOME/go/pkg/mod/planted`}, {"in npm's cache", `$HOME/.npm/_cacache/planted`}, {"in pip's cache", `$HOME/.cache/pip/planted`},
	{"in cargo's registry", `$HOME/.cargo/registry/planted`}, {"in Maven's repository", `$HOME/.m2/repository/planted`},
	{"in /tmp", `/tmp/planted-$LOOP`}, {"in /var/tmp", `/var/tmp/planted-$LOOP`}, {"in shared memory", `/dev/shm/planted-$LOOP`},
}

// leaves are attempts to leave something for verify.
func leaves() (all []attempt) {
	for _, p := range planted {
		all = append(all, attempt{
			name: "plant a file " + p.name, plants: `mkdir -p "$(dirname "` + p.path + `")"; echo planted >>"` + p.path + `"`,
			script: `grep -q planted "` + p.path + `" && rm "` + p.path + `"`,
		})
	}
	return append(all, attempt{
		name: "leave shared memory under a known key", plants: `ipcmk -M 8 -p 0666 >/dev/null`,
		script: `id=$(ipcs -m | awk '$5 == 8 {print $2}' | head -1) && [ -n "$id" ] && ipcrm -m "$id"`,
	})
}

// attempts are by what they are after.
var attempts = []struct {
	after string
	deeds []attempt
}{
	{"Traps for verify", leaves()},
	{"Files of others", []attempt{
		{name: "read the engine's database", script: `head -c 1 "$H/engine/temporal.db"`},
		{name: "list other loops", script: `cat "$H/loops/$OTHER/workspace.json"`},
		{name: "read another loop's logs", script: `cat "$H/loops/$OTHER/steps/"*/stdout`},
		{name: "read a store", script: `cat "$H"/stores/*/HEAD`},
		{name: "write to a store", script: `s=$(ls -d "$H"/stores/*.git) && touch "$s/description"`},
		{name: "find the judge, or from there the desk", script: `for d in "$H/loops/$LOOP/desk" "$H/loops/$LOOP/judge" "${PWD%/*}"/*; do [ "$d" = "$PWD" ] || [ ! -e "$d" ] || exit 0; done; exit 1`},
		{name: "read its ledger", script: `git -C "$(ls -d "$H"/stores/*.git)" show "refs/pawl-ledger/$LOOP:state.json"`},
		{name: "find the user's key", script: `grep key "$HOME/key"`},
		{name: "read git's credentials", script: `cat "$HOME/.git-credentials" "$HOME/.config/git/credentials"`},
		{name: "write to the user's repository", script: `touch "$REPO/README.md"`},
		{name: "plant a GNUmakefile in the repository's root", script: `touch "$REPO/GNUmakefile" && rm "$REPO/GNUmakefile"`},
		{name: "plant a .cargo in the repository's root", script: `mkdir "$REPO/.cargo" && rmdir "$REPO/.cargo"`},
		{name: "replace a file of the repository as editors do", script: `cp -p "$REPO/README.md" "$REPO/.README.md.swp" && mv "$REPO/.README.md.swp" "$REPO/README.md"`},
		{name: "make a hard link to a file of the repository", script: `ln "$REPO/README.md" work/second && rm work/second`},
		{name: "rename the folder above the repository", script: renames(`${REPO%/*}`, `precious`)},
		{name: "rename pawl's home", script: renames(`$H`, `engine`)},
		{name: "plant a git in a folder of the user's PATH", script: `d=${REPO%/*}/shims; printf '#!/bin/sh\n[ -n "$LOOP" ] || echo x >>"%s/canary-git"\nexec /usr/bin/git "$@"\n' "${REPO%/*}" >"$d/git" && chmod +x "$d/git"`},
		{name: "read other programs' files in /tmp", script: `grep -q mine "${REPO%/*}/precious"`},
		{name: "read other programs' shared memory", script: `ls /dev/shm | grep -q pawl-test`},
		{name: "read a file that only root may read", script: `head -c 1 /etc/shadow | grep -q .`},
		{name: "change the mode of /dev/null", script: `chmod "$(stat -c %a /dev/null)" /dev/null`, open: true},
		{name: "take over a device that everybody uses", script: `for d in null zero full random urandom tty; do chown "$(stat -c %u:%g /dev/$d)" /dev/$d && exit; done; exit 1`, open: true},
		{name: "change a device's time", script: `touch -c -d "$(stat -c @%Y /dev/zero)" /dev/zero`, open: true},
		{name: "put a file of its own in a device's place", script: `[ -n "$CONFINED" ] || exit 77; rm /dev/full || mv work/other /dev/full`, without: nothing},
		{name: "write to the system's programs", script: `test -w /usr/bin`},
		{name: "make every program load a library", script: `test -w /etc`},
		{name: "plant a file for cron", script: `test -w /var -o -w /etc/cron.d`},
		{name: "read the disk's device", script: `for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c 1 $d && exit; done; [ -z "$CONFINED" ] && exit 77`},
		{name: "open one of pawl's files by its handle", try: byHandle},
		{name: "watch pawl's folder", try: watches},
		{name: "watch everything on the machine", try: watchesAll, call: unix.SYS_FANOTIFY_INIT},
		{name: "block writers of a file of the repository", try: leases},
		{name: "get signals about changes in the repository", try: notifies},
		{name: "find pawl's files among its open files", script: `for f in /proc/self/fd/* /proc/$PPID/fd/*; do case "$(readlink "$f")" in "$H"/engine*|"$H"/stores*|"$H"/*.lock|"$H"|"$REPO"*) exit 0;; esac; done; exit 1`, without: refused},
		{name: "connect to a socket in the repository", script: connectsUnix(`$REPO/work/socket`)},
		{name: "change a file's time in the repository", script: `touch -c -a "$REPO/README.md"`},
		{name: "write to a file of the repository that it has opened for reading", script: `exec 4<"$REPO/README.md" && : 2>/dev/null >>/proc/self/fd/4`},
		{name: "change a file's mode in the repository", script: `chmod g+r "$REPO/README.md"`},
		{name: "change the owner of a file of the repository", script: `chown "$(id -u)" "$REPO/README.md"`},
		{name: "set a flag on a file of the repository", script: `[ -n "$CONFINED" ] || chattr +d "$REPO/README.md" || exit 77; chattr +d "$REPO/README.md" && chattr -d "$REPO/README.md"`},
		{name: "exchange a file of the repository with one of its own", try: exchanges},
		{name: "link an open file of the repository into its tree", try: linksOpen},
		{name: "change /etc/hosts", script: `exec 4>>/etc/hosts`},
		{name: "read the machine's memory", script: `[ -n "$CONFINED" ] || head -c 1 /proc/kcore | grep -q . || exit 77; head -c 1 /proc/kcore | grep -q .`},
	}},
	{"The engine, over the network", []attempt{
		{name: "connect to the engine", script: `exec 3<>/dev/tcp/127.0.0.1/$ENGINE`},
		{name: "connect to the UI", script: `exec 3<>/dev/tcp/127.0.0.1/$UI`},
		{name: "connect to the engine behind its frontend", script: `exec 3<>/dev/tcp/127.0.0.1/$HISTORY`},
		{name: "connect by multipath TCP", try: multipath},
		{name: "connect by multipath TCP, as Go programs do", try: multipathDialer},
		{name: "send data with TCP fast open", try: fastOpen},
		{name: "connect by SMC", try: family(43, "AF_SMC")},
		{name: "make a TCP socket one of SMC", try: bySMC},
		{name: "talk to other machines by TIPC", try: family(30, "AF_TIPC")},
		{name: "talk to devices by Bluetooth", try: family(31, "AF_BLUETOOTH")},
		{name: "send packets past the kernel by XDP", try: family(44, "AF_XDP")},
		{name: "connect by io_uring", try: byRing, call: unix.SYS_IO_URING_SETUP},
		{name: "listen to all network packets", try: packets},
		{name: "send its own raw packets", try: rawPackets},
		{name: "call the UI at localhost", script: asks(`localhost`)},
		{name: "call the UI at localhost.", script: resolves(`localhost.`) + asks(`localhost.`)},
		{name: "call the UI at a name under localhost", script: resolves(`pawl.localhost`) + asks(`pawl.localhost`)},
		{name: "call the UI at the host's name", script: resolves(`$(hostname)`) + asks(`$(hostname)`)},
		{name: "call the UI at 0.0.0.0", script: asks(`0.0.0.0`)},
		{name: "call the UI at 127.1", script: asks(`127.1`)},
		{name: "call the UI at 2130706433", script: asks(`2130706433`)},
		{name: "call the UI at 0x7f000001", script: asks(`0x7f000001`)},
		{name: "call the UI at 017700000001", script: asks(`017700000001`)},
		{name: "call the UI at ::ffff:127.0.0.1", script: asks(`[::ffff:127.0.0.1]`)},
		{name: "call the UI at ::ffff:7f00:1", script: asks(`[::ffff:7f00:1]`)},
		{name: "call the UI through CONNECT", script: asks(`127.0.0.1`, `-p`)},
		{name: "call the UI by name through CONNECT", script: asks(`localhost`, `-p`)},
		{name: "call the UI through SOCKS5", script: asks(`127.0.0.1`, `${HTTP_PROXY:+-x socks5://${HTTP_PROXY#*//}}`)},
		{name: "call the UI by name through SOCKS5", script: asks(`localhost`, `${HTTP_PROXY:+-x socks5h://${HTTP_PROXY#*//}}`)},
		{name: "call the UI at 0", script: asks(`0`)},
		{name: "call this host at 127.0.0.2", script: letThrough(`127.0.0.2:80`), without: nothing},
		{name: "call this host at 0177.0.0.1", script: letThrough(`0177.0.0.1:80`), without: nothing},
		{name: "call this host at ::", script: letThrough(`[::]:80`), without: nothing},
		{name: "call this host at ::1 with a zone", script: letThrough(`[::1%25lo]:80`), without: nothing},
		{name: "call this host at ::127.0.0.1", script: letThrough(`[::127.0.0.1]:80`), without: nothing},
		{name: "call this host by a NAT64 address", script: letThrough(`[64:ff9b::7f00:1]:80`), without: nothing},
		{name: "call this host by a 6to4 address", script: letThrough(`[2002:7f00:1::1]:80`), without: nothing},
		{name: "call this host at an address of this network", script: letThrough(`0.1.2.3:80`), without: nothing},
		{name: "call this host with other dots", script: letThrough(`127。0。0。1:80`), without: nothing},
		{name: "call this host in letters that mean the same", script: letThrough(`ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:80`), without: nothing},
		{name: "call this host with an escaped dot", script: letThrough(`127.0.0%2e1:80`), without: nothing},
		{name: "call this host in other digits", script: letThrough(`①②⑦.⓪.⓪.①:80`), without: nothing},
		{name: "call the UI with a zero byte after its address", script: proxied(`printf 'CONNECT 127.0.0.1:%s\0.example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n' $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the UI by a URL through CONNECT", script: proxied(`printf 'CONNECT http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n' $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the UI with lines that end in LF", script: proxied(`printf 'CONNECT 127.0.0.1:%s HTTP/1.1\n\n' $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the UI in an older HTTP", script: proxied(`printf 'GET http://127.0.0.1:%s/api/v1/settings\r\n\r\n' $UI`, `"HTTP/1.[01] 200|version"`), without: nothing},
		{name: "call the UI in a newer HTTP", script: proxied(`printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0'`, `"HTTP/1.1 200"`), without: nothing},
		{name: "make the proxy a tunnel by an upgrade", script: proxied(`printf 'GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' $UI`, `"HTTP/1.1 (101|200)"`), without: nothing},
		{name: "send the proxy an endless header", script: proxied(`printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\nX: ' $UI; head -c 3000000 /dev/zero | tr '\0' a; printf '\r\n\r\n'`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the engine by name through CONNECT", script: proxied(`printf 'CONNECT localhost:%s HTTP/1.1\r\nHost: x\r\n\r\n' $ENGINE`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the UI with a user name before its address", script: asks(`example.com@127.0.0.1`)},
		{name: "call the UI through another program's proxy", script: `curl -sf --max-time 10 --noproxy '' -x "http://127.0.0.1:$PROXY" -p "http://127.0.0.1:$UI/api/v1/settings"`},
		{name: "name the UI only in the Host header", script: proxied(`printf 'GET http://192.0.2.1:9/ HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nX-Forwarded-Host: 127.0.0.1:%s\r\n\r\n' $UI $UI`, `"version|HTTP/1.1 200"`), without: nothing},
		{name: "hide a second request behind a first", script: proxied(`printf 'POST http://192.0.2.1:9/ HTTP/1.1\r\nHost: 192.0.2.1:9\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://127.0.0.1:%s/api/v1/settings HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' $UI $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "send two Host lines", script: proxied(`printf 'CONNECT 192.0.2.1:9 HTTP/1.1\r\nHost: 192.0.2.1:9\r\nHost: 127.0.0.1:%s\r\n\r\nGET /api/v1/settings HTTP/1.1\r\nHost: x\r\n\r\n' $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "call the UI through SOCKS4", script: proxied(`printf '\4\1\0\120\177\0\0\1\0'`, `'^Z'`), without: nothing},
		{name: "make the proxy read a file", script: proxied(`printf 'GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n'`, `"HTTP/1.1 200|root:"`), without: nothing},
		{name: "make the proxy speak FTP to this host", script: proxied(`printf 'GET ftp://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n' $UI`, `"HTTP/1.1 200"`), without: nothing},
		{name: "ask the proxy for a page of its own", script: proxied(`printf 'GET /api/v1/settings HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' $UI`, `"HTTP/1.1 200|version"`), without: nothing},
		{name: "make SOCKS5 listen", script: proxied(`printf '\5\1\0\5\2\0\1\0\0\0\0\0\0'`, `$'^\5.\5\\0'`), without: nothing},
		{name: "make SOCKS5 send datagrams", script: proxied(`printf '\5\1\0\5\3\0\1\0\0\0\0\0\0'`, `$'^\5.\5\\0'`), without: nothing},
		{name: "read cloud metadata", script: letThrough(`169.254.169.254:80`), without: nothing},
		{name: "read cloud metadata at its address as a number", script: letThrough(`2852039166:80`), without: nothing},
		{name: "read cloud metadata over IPv6", script: letThrough(`[fd00:ec2::254]:80`), without: nothing},
		{name: "read cloud metadata at a mapped address", script: letThrough(`[::ffff:169.254.169.254]:80`), without: nothing},
		{name: "read cloud metadata by a NAT64 address", script: letThrough(`[64:ff9b::a9fe:a9fe]:80`), without: nothing},
		{name: "read cloud metadata by name", script: letThrough(`metadata.google.internal:80`), without: nothing},
		{name: "reach a link-local address", script: letThrough(`[fe80::1%25eth0]:80`), without: nothing},
		{name: "send a datagram past the proxy", script: `[ -n "$CONFINED" ] || exec 3<>/dev/udp/192.0.2.1/9 || exit 77; exec 3<>/dev/udp/192.0.2.1/9`},
		{name: "list connections to the engine", script: `grep -qi ":$(printf %04X "$ENGINE") " /proc/net/tcp /proc/net/tcp6`},
		{name: "reach a multicast address", script: letThrough(`224.0.0.1:80`), without: nothing},
	}},
	{"Other programs", []attempt{
		{name: "send the worker a signal", script: `kill -0 $UP`},
		{name: "send the supervisor a signal", script: `kill -0 $SUPERVISOR`},
		{name: "read the worker's environment", script: `cat /proc/$UP/environ`},
		{name: "find a secret in another process's environment", script: `grep -qs sesame /proc/[0-9]*/environ`},
		{name: "find a secret in its own environment", script: `env | grep -q sesame`, without: refused},
		{name: "find a secret in pawl's files", script: `grep -rqs sesame "$H"`, without: refused},
		{name: "read the worker's memory", script: `head -c 1 /proc/$UP/maps`},
		{name: "write to the supervisor's memory", script: `exec 4<>/proc/$SUPERVISOR/mem`},
		{name: "open the worker's files", script: `readlink /proc/$UP/fd/0`},
		{name: "reach files through the worker's root", script: `ls "/proc/$UP/root$H/engine"`},
		{name: "reach files through any process's root, folder or open files", script: `for p in /proc/[0-9]*/ /proc/[0-9]*/task/[0-9]*/; do for l in $p/root $p/cwd $p/fd/*; do [ -e "$l$H/engine" ] && exit 0; done; done; exit 1`},
		{name: "trace the worker", try: traces("UP")},
		{name: "trace the supervisor", try: traces("SUPERVISOR")},
		{name: "copy the worker's memory", try: copies("UP")},
		{name: "copy the supervisor's memory", try: copies("SUPERVISOR")},
		{name: "take an open file from the worker", try: takesFile("UP")},
		{name: "take an open file from the supervisor", try: takesFile("SUPERVISOR")},
		{name: "enter the worker's network", script: `nsenter --net=/proc/$UP/ns/net true`},
		{name: "enter the worker's mounts by a pidfd", try: entersBy("UP")},
		{name: "enter the supervisor's mounts by a pidfd", try: entersBy("SUPERVISOR")},
		{name: "limit the worker's CPU time", script: `prlimit --pid $UP --cpu >/dev/null && prlimit --pid $UP --cpu=unlimited`},
		{name: "limit the supervisor's CPU time", script: `prlimit --pid $SUPERVISOR --cpu=unlimited`},
		{name: "make the kernel end the supervisor first", script: `exec 4>/proc/$SUPERVISOR/oom_score_adj`},
		{name: "make the kernel spare it", script: needs(24) + `echo -1000 >/proc/self/oom_score_adj`},
		{name: "slow the worker down", script: `renice -n 0 -p $UP`},
		{name: "slow the supervisor down", script: `renice -n 0 -p $SUPERVISOR`},
		{name: "slow the worker's process group down", script: `perl -e 'my $g = getpgrp($ENV{UP}); $g > 0 && setpriority(1, $g, 0) or exit 1'`},
		{name: "pin the supervisor to one processor", script: `taskset -p $SUPERVISOR >/dev/null && taskset -p $(taskset -p $SUPERVISOR | sed 's/.* //') $SUPERVISOR`},
		{name: "take a processor for itself", script: `chrt -f 50 true`},
		{name: "raise its own priority", script: `test "$(nice -n -5 nice 2>/dev/null)" -lt "$(nice)"`},
		{name: "raise its own limits", script: needs(24) + `l=$(ulimit -Hl); [ "$l" = unlimited ] && exit 77; ulimit -Hl $((l + 1))`},
		{name: "attach other programs' shared memory", try: sharedMemory},
		{name: "open other programs' message queue", try: messageQueue, call: unix.SYS_MQ_OPEN},
		{name: "take one of the user's kernel keys", try: keyring, call: unix.SYS_KEYCTL},
		{name: "type into one of the user's terminals", script: `exec 4>"$TERMINAL"`},
		{name: "make the kernel signal the supervisor", try: signalsByFile("SUPERVISOR")},
		{name: "end the supervisor by signals to its threads", try: signalsThreads},
		{name: "move the supervisor's memory", try: movesPages("SUPERVISOR"), call: unix.SYS_MIGRATE_PAGES},
		{name: "find the pages of the supervisor's memory", try: findsPages("SUPERVISOR"), call: unix.SYS_MOVE_PAGES},
		{name: "find the supervisor's locks", try: findsLocks("SUPERVISOR"), call: unix.SYS_GET_ROBUST_LIST},
		{name: "share the supervisor's processor core", try: sharesCore("SUPERVISOR")},
		{name: "write to the machine's log", script: `[ -n "$CONFINED" ] || [ -S /dev/log ] || exit 77; perl -MIO::Socket::UNIX -MSocket -e 'IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => "/dev/log") or exit 1'`, without: nothing},
		{name: "make the kernel drop the supervisor's memory", try: advises("SUPERVISOR")},
		{name: "compare its files with the supervisor's", try: compares("SUPERVISOR"), call: unix.SYS_KCMP},
		{name: "take priority on the disk", script: `ionice -c 1 true`},
		{name: "lower the worker's priority on the disk", script: `ionice -c 2 -n 4 -p $UP`},
		{name: "ask for deadline scheduling", try: schedules},
		{name: "hear of new processes", try: hears(unix.NETLINK_CONNECTOR, 1)},
		{name: "read the audit log", try: hears(unix.NETLINK_AUDIT, 1)},
		{name: "hear of device changes", try: hears(unix.NETLINK_KOBJECT_UEVENT, 1)},
		{name: "take the supervisor's namespaces from its pidfd", try: takesNamespaces},
		{name: "open the worker by the handle of its pidfd", try: byPidHandle},
		{name: "look at the machine's mounts through a thread of the supervisor", script: byThread(`grep -q . $p/mountinfo`)},
		{name: "look at the machine's network through a thread of the supervisor", script: byThread(`grep -q : $p/net/unix`)},
		{name: "enter the machine's network through a thread of the supervisor", script: byThread(`nsenter --net=$p/ns/net true`)},
		{name: "read how the supervisor was started", script: byThread(`grep -q . $p/cmdline`)},
		{name: "read what a thread of the supervisor does", script: byThread(`grep -q . $p/stat`)},
		{name: "make the kernel end the supervisor first, by one of its threads", script: byThread(`exec 4>$p/oom_score_adj`)},
		{name: "change the supervisor's core dumps", script: byThread(`exec 4>$p/coredump_filter`)},
		{name: "clear the supervisor's page references", script: byThread(`exec 4>$p/clear_refs`)},
		{name: "slow the supervisor's session down", script: byThread(`exec 4>$p/autogroup`)},
		{name: "type into its own terminal", script: `perl -e 'open(my $t, "+<", "/dev/tty") or exit 1; ioctl($t, 0x5412, "x") or exit 1'`, without: refused},
		{name: "connect to a program's socket", script: connectsUnix(`${REPO%/*}/early`)},
		{name: "connect to a socket that opens later", script: `touch work/late; until [ -e work/late.go ]; do sleep 0.05; done; rm work/late work/late.go; ` + connectsUnix(`${REPO%/*}/late`)},
		{name: "connect to an abstract socket", script: `perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack("Sa*", AF_UNIX, "\0pawl-test-$ARGV[0]")) or exit 1' $LOOP`},
		{name: "talk to the container engine", script: `ls /run/docker.sock /var/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock`, without: nothing},
		{name: "talk to the host of a virtual machine", try: family(40, "AF_VSOCK")},
	}},
	{"The kernel", []attempt{
		{name: "read what the machine's memory is used for", script: `[ -n "$CONFINED" ] || head -c 1 /proc/kpagecount | grep -aq . || exit 77; for f in kpageflags kpagecount kpagecgroup vmallocinfo slabinfo; do [ "$(head -c 9 /proc/$f | wc -c)" = 0 ] || exit 0; done; exit 1`},
		{name: "mount the control groups, in its own namespaces", script: uncovers(`mkdir -p work/c; unshare -Urm sh -c 'mount -t cgroup -o pids none work/c || mount -t cgroup2 none work/c'; code=$?; rmdir work/c; exit $code`)},
		{name: "make a namespace of control groups", script: uncovers(`unshare -UrC true`)},
		{name: "mount the kernel's devices, in its own namespaces", script: uncovers(`mkdir -p work/c; unshare -Urmn mount -t sysfs none work/c; code=$?; rmdir work/c; exit $code`)},
		{name: "run a setuid program as its owner", script: `grep -q "NoNewPrivs:.0" /proc/self/status`},
		{name: "mount something", script: `mkdir -p work/m && mount -t tmpfs none work/m; code=$?; umount work/m; rmdir work/m; exit $code`},
		{name: "make the repository writable", script: `mount -o remount,bind,rw "$REPO" && touch "$REPO/README.md" || { mount --bind "$REPO" "$REPO" && umount "$REPO"; }`},
		{name: "uncover files below its root", script: uncovers(`umount -l "$H"; umount -l /tmp; umount -l /; ls "$H/engine"`)},
		{name: "uncover files below its root, in its own namespaces", script: uncovers(`unshare -Urm sh -c 'umount -l "$H"; umount -l "${REPO%/*}"; umount -l /tmp; ls "$H/engine"'`)},
		{name: "make the repository writable, in its own namespaces", script: `unshare -Urm sh -c 'mount -o remount,bind,rw "$REPO"; touch "$REPO/README.md"'`},
		{name: "look below a mount, in its own namespaces", try: belowMounts},
		{name: "mount /proc again, in its own namespaces", script: uncovers(`unshare -Urmpf sh -c 'mount -t proc proc /proc && ls /proc/sys'`)},
		{name: "mount an overlay on the system, in its own namespaces", script: uncovers(`mkdir -p work/l work/u work/w; unshare -Urm sh -c 'mount -t overlay -o lowerdir=/,upperdir=work/u,workdir=work/w none work/l && ls "work/l$H/engine"'; code=$?; rm -rf work/l work/u work/w; exit $code`)},
		{name: "leave its root by a second chroot", script: uncovers(`exec 4</; mkdir -p work/r; perl -e 'chroot("work/r") or exit 1; chdir("/proc/self/fd/4") or open(my $d, "<&=4") && chdir($d) or exit 1; chdir("..") for 1..100; chroot("."); exec "sh", "-c", "ls \"$ENV{H}/engine\""'; code=$?; rmdir work/r; exit $code`)},
		{name: "change its root", script: `mkdir -p work/p/o; unshare -m sh -c 'mount --bind work/p work/p && pivot_root work/p work/p/o'; code=$?; rm -rf work/p; exit $code`},
		{name: "make its root writable", script: uncovers(`mount -o remount,rw / && touch /pawl-test && rm /pawl-test`)},
		{name: "make its root writable, in its own namespaces", script: uncovers(`unshare -Urm sh -c 'mount -o remount,bind,rw / && touch /pawl-test && rm /pawl-test'`)},
		{name: "make the system writable, in its own namespaces", script: `unshare -Urm sh -c 'mount -o remount,bind,rw /usr; touch /usr/pawl-test && rm /usr/pawl-test'`},
		{name: "mount with the newer system calls", try: mountsAnew},
		{name: "open the namespaces that its own are in", try: above, without: nothing},
		{name: "go from its mounts to the machine's", try: otherMounts},
		{name: "look at the mount below its root", try: mountBelow},
		{name: "take the network of a socket that it inherited", try: networkOfASocket, without: nothing},
		{name: "lead a cable into the network around its own", script: `command -v ip >/dev/null || exit 77; [ -n "$CONFINED" ] || { ip link add pawl-c0 type veth peer name pawl-c1 || exit 77; ip link del pawl-c0; exit; }; unshare -Urn ip link add c0 type veth peer name c1 netns 1`},
		{name: "clone a mount", try: clonesMounts},
		{name: "unlock a mount", try: unlocks},
		{name: "mount a disk, in its own namespaces", script: `[ -b /dev/vda ] || exit 77; mkdir -p work/d; unshare -Urm mount -t ext4 /dev/vda work/d; code=$?; rmdir work/d; exit $code`, without: nothing},
		{name: "register a binary format", script: `[ -e /proc/sys/fs/binfmt_misc/register ] || exit 77; exec 4>/proc/sys/fs/binfmt_misc/register`},
		{name: "make the kernel spare it, in its own namespaces", script: `[ -z "$CONFINED" ] && { echo 0 >/proc/self/oom_score_adj; exit; }; unshare -Urpf sh -c 'echo -500 >/proc/self/oom_score_adj'`},
		{name: "make a disk's device", script: `mknod work/disk b 254 0 && head -c 1 work/disk; code=$?; rm -f work/disk; [ -b /dev/vda ] && exit $code; exit 77`, without: nothing},
		{name: "change the core pattern", script: `exec 4<>/proc/sys/kernel/core_pattern`},
		{name: "change the module loader", script: `[ -e /proc/sys/kernel/modprobe ] || exit 77; exec 4<>/proc/sys/kernel/modprobe`},
		{name: "change how the kernel uses memory", script: `exec 4<>/proc/sys/vm/overcommit_memory`},
		{name: "crash the machine", script: `[ -e /proc/sysrq-trigger ] || exit 77; exec 4>/proc/sysrq-trigger`},
		{name: "change its control groups", script: `d=$(find /sys/fs/cgroup -maxdepth 1 -type d 2>/dev/null | tail -1); [ -d "$d" ] || exit 77; mkdir "$d/pawl-test" && rmdir "$d/pawl-test"`},
		{name: "read the kernel's messages", script: `exec 4</dev/kmsg`},
		{name: "talk to the console", script: `[ -c /dev/console ] && exec 4>/dev/console`},
		{name: "load a module", try: module, call: unix.SYS_FINIT_MODULE},
		{name: "stop the machine", try: reboots},
		{name: "start another kernel", try: anotherKernel, call: unix.SYS_KEXEC_LOAD},
		{name: "freeze a file system", try: freezes},
		{name: "change disk quotas", try: quotas, call: unix.SYS_QUOTACTL},
		{name: "change the machine's swap", try: swaps, call: unix.SYS_SWAPOFF},
		{name: "seed the machine's random numbers", try: seeds},
		{name: "turn process accounting on", try: accounts, call: unix.SYS_ACCT},
		{name: "load a program into the kernel", try: loadsBPF, call: unix.SYS_BPF},
		{name: "measure other programs with perf", try: measures, call: unix.SYS_PERF_EVENT_OPEN},
		{name: "handle page faults itself", try: pageFaults, call: unix.SYS_USERFAULTFD},
		{name: "use the kernel's crypto sockets", try: family(38, "AF_ALG")},
		{name: "change network routes", try: routes},
		{name: "rename the host", script: `hostname "$(hostname)"`},
		{name: "set the clock", try: clock},
		{name: "get the capability to mount, trace or load", script: `test $((0x$(sed -n 's/^CapPrm:.//p' /proc/self/status) & 0x290000)) != 0 -o $((0x$(sed -n 's/^CapInh:.//p' /proc/self/status) & 0x290000)) != 0`},
		{name: "reach the engine with a program in memory", try: fromMemory},
		{name: "reach the engine with another user's rights", script: `setpriv --reuid 65534 --regid 65534 --clear-groups bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$ENGINE`},
	}},
}

// byThread does something to a thread of the supervisor, $p, which no list of processes has.
func byThread(script string) string {
	return `for t in $(ls /proc/$SUPERVISOR/task 2>/dev/null || seq 60); do p=/proc/$t; mapfile -t s <$p/status && [[ "${s[*]}" == *"Tgid:	$SUPERVISOR "* ]] || continue; (` + script + `) && exit 0; done; exit 1`
}

// uncovers tries to get at what is below a sandbox's root. Where there is none, nothing has to be uncovered, and
// nothing is tried.
func uncovers(script string) string { return `[ -z "$CONFINED" ] && exec ls "$H/engine"; ` + script }

// renames moves a folder away and back, and looks meanwhile whether it is the one that has a file.
func renames(folder, has string) string {
	return `perl -e '($d, $f) = @ARGV; rename($d, "$d.away") or exit 1; $there = -e "$d.away/$f"; rename("$d.away", $d) && $there or exit 1' "` + folder + `" ` + has
}

// needs says that the machine lacks something where root itself has not a capability, by its number.
func needs(capability int) string {
	return fmt.Sprintf(`[ -z "$CONFINED" ] && [ $((0x$(sed -n 's/^CapBnd:.//p' /proc/self/status) >> %d & 1)) = 0 ] && exit 77; `, capability)
}

// resolves says that the machine lacks a name for 127.0.0.1.
func resolves(name string) string {
	return `[ -n "$CONFINED" ] || getent ahostsv4 "` + name + `" | grep -q ^127.0.0.1 || exit 77; `
}

// asks is a question to the UI by some form of its address, through the proxy where there is one.
func asks(form string, options ...string) string {
	all := ""
	for _, o := range options {
		all += " " + o
	}
	return `curl -sfg --max-time 10 --noproxy '' -H "Host: localhost:$UI"` + all + ` "http://` + form + `:$UI/api/v1/settings" | grep -qi version`
}

// proxied sends bytes to the proxy and looks for a pattern in the answer.
func proxied(send, pattern string) string {
	return `exec 5<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" || exit 1; { ` + send + `; sleep 0.2; } >&5; timeout 1 cat <&5 | tr -d '\0' | grep -aqP ` + pattern
}

// letThrough asks the proxy for a connection, and succeeds unless the proxy says that it lets none through.
func letThrough(to string) string {
	return `exec 5<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" || exit 1; printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' '` + to + `' '` + to + `' >&5; ! timeout 5 head -c 12 <&5 | grep -aqE ' 40[03]'`
}

func connectsUnix(path string) string {
	return `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1' "` + path + `"`
}
