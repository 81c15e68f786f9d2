package repository_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// Repositories contain more than files: submodules, pointers to large files, further working trees, and only a part of
// their history or files.

// A repository and a $PAWL_HOME may have any name that a folder can have.
func TestPlacesOfOddNames(t *testing.T) {
	for _, name := range world.Sample(1, []string{"a b [c", "%41#?*{,:", "-new\nline", `q'"\$x`}) {
		t.Run(name, func(t *testing.T) {
			w := world.Alone(t, world.Raises)
			t.Parallel()
			w.Home = filepath.Join(w.Dir, "home", name)
			moved := filepath.Join(w.Dir, name)
			require.NoError(t, os.Rename(w.Repo, moved))
			w.Repo = moved
			w.Set(doc{"repo": doc{"path": moved}}).Run(0)
			require.Equal(t, "11", w.Kept("work/n"))
			s := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 0, s.Code, s.Err)
			require.Contains(t, w.Pawl("list").Out, w.Loop)
		})
	}
}

// addSubmodule adds a submodule lib with one file to the repository, and checks it out.
func addSubmodule(w *world.World) {
	w.T.Helper()
	lib := filepath.Join(w.Dir, "library")
	w.Git("init", "--quiet", "--initial-branch=main", lib)
	w.Write("library/height", "1\n")
	w.Git("-C", lib, "add", "height")
	w.Git("-C", lib, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message", "height")
	w.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	w.Commit("a submodule")
}

func TestSubmodules(t *testing.T) {
	const fetch = "git -c protocol.file.allow=always submodule --quiet update --init"
	t.Run("empty in the trees where setup fetches none", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, `ls lib >"$WORLD/lib"; `+world.Raises)
		addSubmodule(w)
		at := w.Git("rev-parse", "HEAD:lib")
		w.Run(0)
		require.Equal(t, "yes", w.LastRow().Kept())
		require.Empty(t, w.Read("lib"))
		require.Equal(t, at, w.Git("rev-parse", "pawl/"+w.Loop+":lib"), "the branch names the same commit of it")
	})
	t.Run("fetched by setup, in both trees", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, `cat lib/height >"$WORLD/height"; `+world.Raises)
		addSubmodule(w)
		w.Set(doc{"setup": doc{"command": fetch}, "verify": doc{"command": "expr $(cat work/n) + $(cat lib/height)"}})
		w.Run(0)
		require.Equal(t, row{"1", "12", "+1.00", "yes", "raise the number"}, w.LastRow())
		require.Equal(t, "1\n", w.Read("height"))
	})
	t.Run("changed by the agent", func(t *testing.T) {
		deeds := []deed{
			{"change a file in it", `echo 90 >lib/height; (cd lib; g commit -qam higher)`, ""},
			{"replace it by files", `rm -rf lib; mkdir lib; echo 90 >lib/height; git rm -rq --cached lib; git add lib`, ""},
			{"remove it", `rm -rf lib`, "policy:fileType"},
			{"make it a file", `rm -rf lib; echo >lib`, "policy:fileType"},
			{"raise the number", ``, ""},
		}
		w := world.New(t, "")
		addSubmodule(w)
		at := w.Git("rev-parse", "HEAD:lib")
		w.Does(deeds...).Set(doc{"setup": doc{"command": fetch}, "verify": doc{"command": "expr $(cat work/n) - 1 + $(cat lib/height)"}})
		w.Run(0)
		w.Come(deeds...) // the judge has the submodule at the commit that the change names
		require.Equal(t, at, w.Git("rev-parse", "pawl/"+w.Loop+":lib"))
		require.Contains(t, w.Pawl("log", w.Loop).Out, "so this is left out: lib/height")
	})
	t.Run("with changes of the user's in it", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, world.Raises)
		addSubmodule(w)
		w.Write("repo/lib/height", "2\n")
		w.Before = w.Snapshot()
		s := w.Pawl("run", "--yes", w.SpecFile())
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "the working tree is not clean: lib")
	})
}

// pointer is git's content of a file that Git LFS stores elsewhere.
const pointer = `version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
`

// The trees contain git's content of such files, the pointers. The user's tree contains the real content, because pawl
// lets the filter run there and nowhere else.
func TestLargeFilesOfLFS(t *testing.T) {
	world.Slow(t, "as filters of the user")
	deeds := []deed{
		{"raise the number", `cat work/large.bin >"$WORLD/seen"`, ""},
		{"put the content in the place of a pointer", `head -c 12345 /dev/zero >work/large.bin`, "policy:fileType"},
		{"raise it again", ``, ""},
	}
	w := world.New(t, "").Does(deeds...)
	w.Write("filter.sh", "#!/bin/sh\ncat >/dev/null\n[ $1 = smudge ] && echo content || cat '"+w.Dir+"/pointer'\n")
	w.Write("pointer", pointer)
	for _, way := range []string{"clean", "smudge"} {
		w.Git("config", "filter.lfs."+way, "sh "+filepath.Join(w.Dir, "filter.sh")+" "+way)
	}
	w.Git("config", "filter.lfs.required", "true")
	w.Write("repo/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	w.Write("repo/work/large.bin", "content\n")
	w.Commit("a large file")
	require.Equal(t, strings.TrimSpace(pointer), w.Git("show", "HEAD:work/large.bin"))
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	w.Come(deeds...)
	require.Equal(t, pointer, w.Read("seen"))
	require.Equal(t, strings.TrimSpace(pointer), w.Kept("work/large.bin"))
	require.Contains(t, s.Err, "Git LFS")
}

// No other filter runs either. Only the user's configuration says what it is and where.
func TestFiltersOfTheUsers(t *testing.T) {
	world.Slow(t, "internal/git/worktree has filters")
	w := world.New(t, `cat work/secret.txt >"$WORLD/seen"; echo 11 >work/n; echo B >>work/secret.txt; echo "raise the number"`)
	w.Git("config", "filter.shout.clean", "tr A-Z a-z")
	w.Git("config", "filter.shout.smudge", "tr a-z A-Z")
	w.Git("config", "filter.shout.required", "true")
	w.Write("repo/.gitattributes", "# filter=none\n*.txt filter=shout\n*.md text filter=shout\n")
	w.Write("repo/work/secret.txt", "A\n")
	w.Commit("a filter")
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Equal(t, "a\n", w.Read("seen"))
	require.Equal(t, "a\nB", w.Kept("work/secret.txt"))
	require.Equal(t, 1, strings.Count(strings.Join(strings.Fields(s.Err), " "), "through the filter shout (.gitattributes), which does not run in the loop"), s.Err)
}

// A loop can start from any of the user's working trees, and changes none of them.
func TestWorktreesOfTheUsers(t *testing.T) {
	world.Slow(t, "TestA7_UserWorksOnWhileTheLoopRuns works beside the loop")
	w := world.New(t, world.Raises)
	side, other := filepath.Join(w.Dir, "side"), filepath.Join(w.Dir, "other")
	w.Git("worktree", "add", "--quiet", "-b", "side", side)
	w.Git("worktree", "add", "--quiet", "--detach", other)
	w.Write("side/work/n", "20\n")
	w.Git("-C", side, "commit", "--quiet", "--all", "--message", "higher")
	w.Write("other/work/n", "99\n")
	w.Write("repo/work/n", "98\n")
	w.Before = w.Snapshot()
	r := w.Set(doc{"repo": doc{"path": side}}).Run(0)
	require.Equal(t, "21", w.Kept("work/n"))
	require.Empty(t, w.Git("-C", side, "status", "--porcelain"))
	require.Equal(t, " M work/n", w.Git("-C", other, "status", "--porcelain"))
	require.Equal(t, w.Git("rev-parse", "side"), r.Result.Proposal.Base)

	w.Set(doc{"repo": doc{"path": other}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err, "HEAD is detached")
}

func TestPartOfARepository(t *testing.T) {
	for _, c := range world.Sample(1, []struct {
		name  string
		clone func(w *world.World, to string)
	}{
		{"a shallow clone", func(w *world.World, to string) {
			w.Git("clone", "--quiet", "--depth", "1", "file://"+w.Repo, to)
		}},
		{"a sparse checkout", func(w *world.World, to string) {
			w.Git("clone", "--quiet", w.Repo, to)
			w.Git("-C", to, "sparse-checkout", "set", "--no-cone", "/README.md")
		}},
		{"a sparse checkout with a sparse index", func(w *world.World, to string) {
			w.Git("clone", "--quiet", w.Repo, to)
			w.Git("-C", to, "sparse-checkout", "set", "--cone", "--sparse-index", "elsewhere")
		}},
		{"grafts, which say that the history is shorter", func(w *world.World, to string) {
			w.Git("clone", "--quiet", w.Repo, to)
			require.NoError(w.T, os.WriteFile(filepath.Join(to, ".git", "info", "grafts"), []byte(w.Git("rev-parse", "HEAD")+"\n"), 0o600))
		}},
		{"a commit in the place of another", func(w *world.World, to string) {
			w.Git("clone", "--quiet", w.Repo, to)
			w.Git("-C", to, "replace", "--graft", "HEAD")
		}},
		{"objects that another repository has", func(w *world.World, to string) {
			w.Git("clone", "--quiet", "--shared", w.Repo, to)
		}},
		{"a clone that has fetched what its filter left out", func(w *world.World, to string) {
			w.Git("config", "uploadpack.allowFilter", "true")
			w.Git("clone", "--quiet", "--filter=blob:none", "--sparse", "file://"+w.Repo, to)
			w.Git("-C", to, "-c", "maintenance.auto=false", "fetch", "--quiet", "--refetch", "--no-filter")
		}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, world.Raises)
			w.Write("repo/README.md", "a higher hill\n")
			w.Write("repo/elsewhere/x", "x\n")
			w.Commit("more")
			part := filepath.Join(w.Dir, "part")
			c.clone(w, part)
			w.Repo = part
			w.Before = w.Snapshot()
			w.Set(doc{"repo": doc{"path": part}}).Run(0)
			require.Equal(t, "11", w.Kept("work/n"))
			require.Equal(t, []string{"README.md", "elsewhere/x", "guard.sh", "measure.sh", "work/n", "work/other"}, w.OnBranch())
		})
	}
}

// git would have to fetch each missing file by itself, and refuses to.
func TestP0_PartialClone(t *testing.T) {
	world.Slow(t, "TestPartOfARepository has one")
	w := world.New(t, world.Raises)
	part := filepath.Join(w.Dir, "part")
	w.Git("config", "uploadpack.allowFilter", "true")
	w.Git("clone", "--quiet", "--filter=blob:none", "--sparse", "file://"+w.Repo, part)
	w.Repo = part
	w.Before = w.Snapshot()
	s := w.Set(doc{"repo": doc{"path": part}}).Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code, s.Err)
	for _, text := range []string{"is a partial clone", "git fetch --refetch --no-filter", "PRECONDITION_FAILED"} {
		require.Contains(t, s.Err, text)
	}
	world.Plain(t, s.Err)
}

// Names that are the same on a Mac or under Windows are different here, and stay different.
func TestNamesThatDifferByCaseAlone(t *testing.T) {
	world.Slow(t, "as the other odd repositories")
	deeds := []deed{
		{"raise the number", `echo upper >>work/N`, ""},
		{"add names that differ by case", `echo x >work/Other; mkdir Work; echo x >Work/n`, "policy:scope"},
		{"add one in the scope", `echo x >work/Other`, ""},
	}
	w := world.New(t, "").Does(deeds...).Set(doc{"newFiles": "allow"})
	w.Write("repo/work/N", "upper\n")
	w.Write("repo/readme.md", "lower\n")
	w.Commit("names")
	w.Run(0)
	w.Come(deeds...)
	require.Equal(t, "upper\nupper", w.Kept("work/N"))
	require.Equal(t, "good", w.Kept("work/other"))
	require.Equal(t, "x", w.Kept("work/Other"))
}

// measured returns how many of something a test uses, or the number in a variable, for measurements that take longer
// than a test run may.
func measured(t *testing.T, variable string, n int64) int64 {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err)
	}
	return n
}

func TestRepositoryOfManyFiles(t *testing.T) {
	world.Slow(t, "thousands of files")
	deeds := []deed{
		{"raise the number", ``, ""},
		{"change a file out of the scope", `echo x >>many/17/1017`, "policy:scope"},
		{"remove them all", `rm -rf many`, "policy:scope"},
		{"raise it again", `ls many/* | wc -l >"$WORLD/files"`, ""},
	}
	w := world.New(t, "").Does(deeds...)
	n := measured(t, "PAWL_TEST_FILES", 5000)
	for i := range n {
		w.Write(fmt.Sprintf("repo/many/%d/%d", i%100, i), fmt.Sprintln("file", i))
	}
	w.Commit("many files")
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	w.Come(deeds...)
	require.Equal(t, fmt.Sprint(n+100+99), strings.TrimSpace(w.Read("files")), "with a heading and an empty line per folder")
	t.Logf("%d files\n%s", n, s.Err)
}

// sparse makes a file of that size without content.
func sparse(w *world.World, name string, size int64) {
	w.T.Helper()
	w.Write(name, "")
	require.NoError(w.T, os.Truncate(filepath.Join(w.Dir, name), size))
}

// A large file that git does not have costs nothing. A large file in git is in both trees, and is read when it changes.
func TestRepositoryWithALargeFile(t *testing.T) {
	t.Run("ignored", func(t *testing.T) {
		w := world.New(t, world.Raises)
		w.Write("repo/.gitignore", "*.iso\n")
		w.Commit("ignore images")
		sparse(w, "repo/big.iso", 2<<30)
		w.Before = w.Snapshot()
		w.Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
	})
	t.Run("untracked", func(t *testing.T) {
		w := world.New(t, world.Raises)
		sparse(w, "repo/big.iso", 2<<30)
		w.Before = w.Snapshot()
		s := w.Pawl("run", "--yes", w.SpecFile())
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "the working tree is not clean: big.iso")
	})
	t.Run("tracked", func(t *testing.T) {
		world.Slow(t, "git reads all of it, several times")
		deeds := []deed{
			{"raise the number", ``, ""},
			{"touch it", `touch big.iso`, ""},
			{"change it", `printf x | dd of=big.iso conv=notrunc`, "policy:scope"},
			{"raise it again", ``, ""},
		}
		w := world.New(t, "").Does(deeds...)
		sparse(w, "repo/big.iso", measured(t, "PAWL_TEST_BYTES", 48<<20))
		w.Commit("an image")
		s := w.Pawl("run", "--yes", w.SpecFile())
		require.Equal(t, 0, s.Code, s.Err)
		w.Come(deeds...)
		t.Log(s.Err)
	})
	t.Run("made by the agent", func(t *testing.T) {
		world.Slow(t, "git reads all of it")
		deeds := []deed{
			{"make a large file", fmt.Sprintf(`truncate -s %d work/big.iso`, measured(t, "PAWL_TEST_BYTES", 48<<20)), "policy:newFiles"},
			{"raise the number", ``, ""},
		}
		w := world.New(t, "").Does(deeds...)
		s := w.Pawl("run", "--yes", w.SpecFile())
		require.Equal(t, 0, s.Code, s.Err)
		w.Come(deeds...)
		t.Log(s.Err)
	})
}
