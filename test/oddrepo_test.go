package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Repositories of people hold more than files: submodules, pointers to large files, worktrees of
// their own, and only a part of their history or of their files.

// A repository and a $PAWL_HOME may be called whatever a folder can be.
func TestPlacesOfOddNames(t *testing.T) {
	for _, name := range []string{"a b [c", "%41#?*{,:", "-new\nline", `q'"\$x`} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOfItsOwn(t, raises)
			t.Parallel()
			w.home = filepath.Join(w.dir, "home", name)
			moved := filepath.Join(w.dir, name)
			require.NoError(t, os.Rename(w.repo, moved))
			w.repo = moved
			w.set(doc{"repo": doc{"path": moved}}).run(0)
			require.Equal(t, "11", w.kept("work/n"))
			s := w.pawl("validate", w.specFile())
			require.Equal(t, 0, s.code, s.err)
			require.Contains(t, w.pawl("list").out, w.loop)
		})
	}
}

// addSubmodule gives the repository a submodule lib, checked out, with one file.
func (w *world) addSubmodule() {
	w.t.Helper()
	lib := filepath.Join(w.dir, "library")
	w.git("init", "--quiet", "--initial-branch=main", lib)
	w.write("library/height", "1\n")
	w.git("-C", lib, "add", "height")
	w.git("-C", lib, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message", "height")
	w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	w.commit("a submodule")
}

func TestSubmodules(t *testing.T) {
	const fetch = "git -c protocol.file.allow=always submodule --quiet update --init"
	t.Run("empty in the trees where setup fetches none", func(t *testing.T) {
		w := newWorld(t, `ls lib >"$WORLD/lib"; `+raises)
		w.addSubmodule()
		at := w.git("rev-parse", "HEAD:lib")
		w.run(0)
		require.Equal(t, "yes", w.lastRow().kept)
		require.Empty(t, w.read("lib"))
		require.Equal(t, at, w.git("rev-parse", "pawl/"+w.loop+":lib"), "the branch names the same commit of it")
	})
	t.Run("fetched by setup, in both trees", func(t *testing.T) {
		w := newWorld(t, `cat lib/height >"$WORLD/height"; `+raises)
		w.addSubmodule()
		w.set(doc{"setup": doc{"command": fetch}, "verify": doc{"command": "expr $(cat work/n) + $(cat lib/height)"}})
		w.run(0)
		require.Equal(t, row{"1", "12", "+1.00", "yes", "raise the number"}, w.lastRow())
		require.Equal(t, "1\n", w.read("height"))
	})
	t.Run("changed by the agent", func(t *testing.T) {
		deeds := []deed{
			{"change a file in it", `echo 90 >lib/height; (cd lib; g commit -qam higher)`, ""},
			{"replace it by files", `rm -rf lib; mkdir lib; echo 90 >lib/height; git rm -rq --cached lib; git add lib`, ""},
			{"remove it", `rm -rf lib`, "policy:fileType"},
			{"make it a file", `rm -rf lib; echo >lib`, "policy:fileType"},
			{"raise the number", ``, ""},
		}
		w := newWorld(t, "")
		w.addSubmodule()
		at := w.git("rev-parse", "HEAD:lib")
		w.does(deeds...).set(doc{"setup": doc{"command": fetch}, "verify": doc{"command": "expr $(cat work/n) - 1 + $(cat lib/height)"}})
		w.run(0)
		w.come(deeds...) // the judge has the submodule as the commit names it
		require.Equal(t, at, w.git("rev-parse", "pawl/"+w.loop+":lib"))
	})
	t.Run("with changes of the user's in it", func(t *testing.T) {
		w := newWorld(t, raises)
		w.addSubmodule()
		w.write("repo/lib/height", "2\n")
		w.before = w.snapshot()
		s := w.pawl("run", "--yes", w.specFile())
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "the working tree is not clean: lib")
	})
}

// pointer is what git has of a file that Git LFS keeps elsewhere.
const pointer = `version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
`

// The trees hold what git has of such files, the pointers. The user's tree holds the content,
// through a filter that pawl lets run there and nowhere else.
func TestLargeFilesOfLFS(t *testing.T) {
	deeds := []deed{
		{"raise the number", `cat work/large.bin >"$WORLD/seen"`, ""},
		{"put the content in the place of a pointer", `head -c 12345 /dev/zero >work/large.bin`, "policy:fileType"},
		{"raise it again", ``, ""},
	}
	w := newWorld(t, "").does(deeds...)
	w.write("filter.sh", "#!/bin/sh\ncat >/dev/null\n[ $1 = smudge ] && echo content || cat '"+w.dir+"/pointer'\n")
	w.write("pointer", pointer)
	for _, way := range []string{"clean", "smudge"} {
		w.git("config", "filter.lfs."+way, "sh "+filepath.Join(w.dir, "filter.sh")+" "+way)
	}
	w.git("config", "filter.lfs.required", "true")
	w.write("repo/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	w.write("repo/work/large.bin", "content\n")
	w.commit("a large file")
	require.Equal(t, strings.TrimSpace(pointer), w.git("show", "HEAD:work/large.bin"))
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	w.come(deeds...)
	require.Equal(t, pointer, w.read("seen"))
	require.Equal(t, strings.TrimSpace(pointer), w.kept("work/large.bin"))
	require.Contains(t, s.err, "Git LFS")
}

// No other filter runs either: what it is, and where, only the user's configuration says.
func TestFiltersOfTheUsers(t *testing.T) {
	w := newWorld(t, `cat work/secret.txt >"$WORLD/seen"; echo 11 >work/n; echo B >>work/secret.txt; echo "raise the number"`)
	w.git("config", "filter.shout.clean", "tr A-Z a-z")
	w.git("config", "filter.shout.smudge", "tr a-z A-Z")
	w.git("config", "filter.shout.required", "true")
	w.write("repo/.gitattributes", "# filter=none\n*.txt filter=shout\n*.md text filter=shout\n")
	w.write("repo/work/secret.txt", "A\n")
	w.commit("a filter")
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	require.Equal(t, "a\n", w.read("seen"))
	require.Equal(t, "a\nB", w.kept("work/secret.txt"))
	require.Equal(t, 1, strings.Count(s.err, "through the filter shout (.gitattributes), which does not run for the loop"), s.err)
}

// A loop can be started from any worktree of the user's, and none of them is touched.
func TestWorktreesOfTheUsers(t *testing.T) {
	w := newWorld(t, raises)
	side, other := filepath.Join(w.dir, "side"), filepath.Join(w.dir, "other")
	w.git("worktree", "add", "--quiet", "-b", "side", side)
	w.git("worktree", "add", "--quiet", "--detach", other)
	w.write("side/work/n", "20\n")
	w.git("-C", side, "commit", "--quiet", "--all", "--message", "higher")
	w.write("other/work/n", "99\n")
	w.write("repo/work/n", "98\n")
	w.before = w.snapshot()
	r := w.set(doc{"repo": doc{"path": side}}).run(0)
	require.Equal(t, "21", w.kept("work/n"))
	require.Empty(t, w.git("-C", side, "status", "--porcelain"))
	require.Equal(t, " M work/n", w.git("-C", other, "status", "--porcelain"))
	require.Equal(t, w.git("rev-parse", "side"), r.Result.Proposal.Base)

	w.set(doc{"repo": doc{"path": other}})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "HEAD is detached")
}

func TestPartOfARepository(t *testing.T) {
	for _, c := range []struct {
		name  string
		clone func(w *world, to string)
	}{
		{"a shallow clone", func(w *world, to string) {
			w.git("clone", "--quiet", "--depth", "1", "file://"+w.repo, to)
		}},
		{"a sparse checkout", func(w *world, to string) {
			w.git("clone", "--quiet", w.repo, to)
			w.git("-C", to, "sparse-checkout", "set", "--no-cone", "/README.md")
		}},
		{"a sparse checkout with a sparse index", func(w *world, to string) {
			w.git("clone", "--quiet", w.repo, to)
			w.git("-C", to, "sparse-checkout", "set", "--cone", "--sparse-index", "elsewhere")
		}},
		{"grafts, which say that the history is shorter", func(w *world, to string) {
			w.git("clone", "--quiet", w.repo, to)
			require.NoError(w.t, os.WriteFile(filepath.Join(to, ".git", "info", "grafts"), []byte(w.git("rev-parse", "HEAD")+"\n"), 0o600))
		}},
		{"a commit in the place of another", func(w *world, to string) {
			w.git("clone", "--quiet", w.repo, to)
			w.git("-C", to, "replace", "--graft", "HEAD")
		}},
		{"objects that another repository has", func(w *world, to string) {
			w.git("clone", "--quiet", "--shared", w.repo, to)
		}},
		{"a clone that has fetched what its filter left out", func(w *world, to string) {
			w.git("config", "uploadpack.allowFilter", "true")
			w.git("clone", "--quiet", "--filter=blob:none", "--sparse", "file://"+w.repo, to)
			w.git("-C", to, "-c", "maintenance.auto=false", "fetch", "--quiet", "--refetch", "--no-filter")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, raises)
			w.write("repo/README.md", "a higher hill\n")
			w.write("repo/elsewhere/x", "x\n")
			w.commit("more")
			part := filepath.Join(w.dir, "part")
			c.clone(w, part)
			w.repo = part
			w.before = w.snapshot()
			w.set(doc{"repo": doc{"path": part}}).run(0)
			require.Equal(t, "11", w.kept("work/n"))
			require.Equal(t, []string{"README.md", "elsewhere/x", "guard.sh", "measure.sh", "work/n", "work/other"}, w.onBranch())
		})
	}
}

// git would have to fetch what is not there one file after the other, and refuses to.
func TestP0_PartialClone(t *testing.T) {
	w := newWorld(t, raises)
	part := filepath.Join(w.dir, "part")
	w.git("config", "uploadpack.allowFilter", "true")
	w.git("clone", "--quiet", "--filter=blob:none", "--sparse", "file://"+w.repo, part)
	w.repo = part
	w.before = w.snapshot()
	s := w.set(doc{"repo": doc{"path": part}}).pawl("run", "--yes", w.specFile())
	require.Equal(t, 2, s.code, s.err)
	for _, text := range []string{"is a partial clone", "git fetch --refetch --no-filter", "PRECONDITION_FAILED"} {
		require.Contains(t, s.err, text)
	}
	plain(t, s.err)
}

// Names that are one name on a Mac or under Windows are two here, and stay two.
func TestNamesThatDifferByCaseAlone(t *testing.T) {
	deeds := []deed{
		{"raise the number", `echo upper >>work/N`, ""},
		{"add names that differ by case", `echo x >work/Other; mkdir Work; echo x >Work/n`, "policy:scope"},
		{"add one in the scope", `echo x >work/Other`, ""},
	}
	w := newWorld(t, "").does(deeds...).set(doc{"newFiles": "allow"})
	w.write("repo/work/N", "upper\n")
	w.write("repo/readme.md", "lower\n")
	w.commit("names")
	w.run(0)
	w.come(deeds...)
	require.Equal(t, "upper\nupper", w.kept("work/N"))
	require.Equal(t, "good", w.kept("work/other"))
	require.Equal(t, "x", w.kept("work/Other"))
}

// measured is how many there are of something in a test, or as many as a variable says: more than
// a test run has the time for, to measure with.
func measured(t *testing.T, variable string, n int64) int64 {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err)
	}
	return n
}

func TestRepositoryOfManyFiles(t *testing.T) {
	deeds := []deed{
		{"raise the number", ``, ""},
		{"change a file out of the scope", `echo x >>many/17/1017`, "policy:scope"},
		{"remove them all", `rm -rf many`, "policy:scope"},
		{"raise it again", `ls many/* | wc -l >"$WORLD/files"`, ""},
	}
	w := newWorld(t, "").does(deeds...)
	n := measured(t, "PAWL_TEST_FILES", 5000)
	for i := range n {
		w.write(fmt.Sprintf("repo/many/%d/%d", i%100, i), fmt.Sprintln("file", i))
	}
	w.commit("many files")
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	w.come(deeds...)
	require.Equal(t, fmt.Sprint(n+100+99), strings.TrimSpace(w.read("files")), "with a heading and an empty line per folder")
	t.Logf("%d files\n%s", n, s.err)
}

// sparse makes a file of that size with nothing in it.
func (w *world) sparse(name string, size int64) {
	w.t.Helper()
	w.write(name, "")
	require.NoError(w.t, os.Truncate(filepath.Join(w.dir, name), size))
}

// A large file that git does not have costs nothing. One that it has is in both trees, and is
// looked at when it changes.
func TestRepositoryWithALargeFile(t *testing.T) {
	t.Run("ignored", func(t *testing.T) {
		w := newWorld(t, raises)
		w.write("repo/.gitignore", "*.iso\n")
		w.commit("ignore images")
		w.sparse("repo/big.iso", 2<<30)
		w.before = w.snapshot()
		w.run(0)
		require.Equal(t, "11", w.kept("work/n"))
	})
	t.Run("untracked", func(t *testing.T) {
		w := newWorld(t, raises)
		w.sparse("repo/big.iso", 2<<30)
		w.before = w.snapshot()
		s := w.pawl("run", "--yes", w.specFile())
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "the working tree is not clean: big.iso")
	})
	t.Run("tracked", func(t *testing.T) {
		deeds := []deed{
			{"raise the number", ``, ""},
			{"touch it", `touch big.iso`, ""},
			{"change it", `printf x | dd of=big.iso conv=notrunc`, "policy:scope"},
			{"raise it again", ``, ""},
		}
		w := newWorld(t, "").does(deeds...)
		w.sparse("repo/big.iso", measured(t, "PAWL_TEST_BYTES", 48<<20))
		w.commit("an image")
		s := w.pawl("run", "--yes", w.specFile())
		require.Equal(t, 0, s.code, s.err)
		w.come(deeds...)
		t.Log(s.err)
	})
	t.Run("made by the agent", func(t *testing.T) {
		deeds := []deed{
			{"make a large file", fmt.Sprintf(`truncate -s %d work/big.iso`, measured(t, "PAWL_TEST_BYTES", 48<<20)), "policy:newFiles"},
			{"raise the number", ``, ""},
		}
		w := newWorld(t, "").does(deeds...)
		s := w.pawl("run", "--yes", w.specFile())
		require.Equal(t, 0, s.code, s.err)
		w.come(deeds...)
		t.Log(s.err)
	})
}
