//go:build long

package virtual

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// edit is a change of a source file for a build: old, which is there once, becomes new.
type edit struct{ file, old, new string }

// runtimeEdits are those of Go's library by which a seed determines a run, in one thread. A
// bubble has random numbers of its own, so that select, maps and timers of one instant choose
// alike, and goroutines outside have others. Addresses are hashed by the order in which they
// are first hashed, also inside of larger keys, such as those of net/netip, which point to
// their zone: where memory is decides nothing. Nobody is preempted, no system call
// gives way, and no timer outside fires while anybody can go on. The process has no number
// and the machine no name. And time passes while a goroutine waits for a mutex, whose holder
// may itself wait for a store.
var runtimeEdits = []edit{
	{"runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\tclear(seed[:])\n\tseed[0] = 1\n\tglobalRand.state.Init(*seed)\n"},
	{"runtime/rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n\tif gp := getg(); gp.bubble != nil {\n\t\treturn gp.bubble.random()\n\t} else if gp != gp.m.g0 {\n\t\treturn outside.random()\n\t}\n"},
	{"runtime/select.go", "j := cheaprandn(uint32(norder + 1))", "j := uint32(pick() % uint64(norder+1))"},
	{"runtime/time.go", "t.rand = cheaprand()", "t.rand = uint32(pick())"},
	{"runtime/synctest.go", "\ttotal   int // total goroutines\n", "\tstate   uint64 // of random\n\ttotal   int // total goroutines\n"},
	{"runtime/synctest.go", "\tconst synctestBaseTime =", "\tnumbered.last[1] = 1 << 20 // whatever has been before\n\tconst synctestBaseTime ="},
	{"runtime/synctest.go", "// changegstatus is called when", `// random returns the next number of SplitMix64.
//
//go:nosplit
func (bubble *synctestBubble) random() uint64 {
	bubble.state += 0x9e3779b97f4a7c15
	z := bubble.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// outside has the numbers of goroutines that are in no bubble.
var outside synctestBubble

// numbered are the addresses that have been keys of maps, each at a place that its bits
// determine, with its number.
var numbered struct {
	list []struct{ address, number uintptr }
	n    uintptr    // how many are in the list
	last [2]uintptr // the last number of goroutines that are in no bubble, and of those that are
}

// numberOf returns what an address has in the place of its bits when it is hashed: how many
// others have been hashed before it. Where memory is, is another in each run.
func numberOf(v uintptr) uintptr {
	t := &numbered
	if spanOf(v) == nil {
		return v
	}
	if t.n*2 >= uintptr(len(t.list)) {
		old := t.list
		size := max(1<<16, 2*len(old))
		t.list = unsafe.Slice((*struct{ address, number uintptr })(persistentalloc(uintptr(size)*16, 8, &memstats.other_sys)), size)
		for _, x := range old {
			if x.address != 0 {
				*placeOf(x.address) = x
			}
		}
	}
	p := placeOf(v)
	if p.address == 0 {
		t.n++
		in := 0
		if gp := getg().m.curg; gp != nil && gp.bubble != nil {
			in = 1
		}
		t.last[in]++
		p.address, p.number = v, t.last[in]
	}
	return p.number
}

func placeOf(v uintptr) *struct{ address, number uintptr } {
	last := uintptr(len(numbered.list) - 1)
	for i := v * 0x9e3779b97f4a7c15 >> 20 & last; ; i = (i + 1) & last {
		if p := &numbered.list[i]; p.address == v || p.address == 0 {
			return p
		}
	}
}

// pick is cheaprand for choices that decide who goes on.
func pick() uint64 {
	if b := getg().bubble; b != nil {
		return b.random()
	}
	return uint64(cheaprand())
}

// changegstatus is called when`},
	{"runtime/runtime2.go", "\twaitReasonSynctestRun:           true,\n", "\twaitReasonSynctestRun:           true,\n\twaitReasonSyncMutexLock:         true,\n\twaitReasonSyncRWMutexRLock:      true,\n\twaitReasonSyncRWMutexLock:       true,\n"},
	{"runtime/sema.go", "func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n\tif getg().bubble != nil {\n\t\treturn 0\n\t}\n"},
	{"runtime/alg.go", "cpu.X86.HasAES && // AESENC", "false &&"},
	{"runtime/alg.go", "GOARCH == \"arm64\" && cpu.ARM64.HasAES", "false"},
	{"runtime/hash64.go", "return uintptr(readUnaligned64(p))", "return numberOf(uintptr(readUnaligned64(p)))"},
	{"runtime/proc.go", "now, pollUntil, _ := pp.timers.check(0, nil)", "now, pollUntil := int64(0), int64(0)\n\tif runqempty(pp) && sched.runq.empty() {\n\t\tnow, pollUntil, _ = pp.timers.check(0, nil)\n\t}"},
	{"os/exec.go", "return syscall.Getpid()", "return 1"},
	{"os/sys.go", "return hostname()", "return \"virtual\", nil"},
	{"runtime/proc.go", "if pp.schedtick%61 == 0 && ", "if pp.schedtick == ^uint32(0) && "},
	{"runtime/proc.go", "func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n\tif now != 0 {\n\t\treturn 0\n\t}\n"},
}

// build builds this package's tests with changes, at a path or, with "", in a
// directory of the test's, and returns the path.
func build(t *testing.T, program string, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	list := overlay(t, dir, edits)
	if program == "" {
		program = filepath.Join(dir, "virtual")
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-tags", "long", "-overlay", list, "-o", program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// overlay writes the changed files to a directory, and the list of them, for go
// build, whose path it returns.
func overlay(t *testing.T, dir string, edits []edit) string {
	t.Helper()
	replaced := map[string]string{}
	for _, e := range edits {
		from := e.file
		if b, ok := replaced[e.file]; ok {
			from = b
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			t.Fatalf("%s: want once, is there %d times; bring the edit up to date: %s", e.file, n, e.old)
		}
		to := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(e.file, "/"), "/", "_"))
		if err := os.WriteFile(to, bytes.Replace(text, []byte(e.old), []byte(e.new), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[e.file] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// inRuntime returns the edits with whole paths, of the runtime and of this module.
func inRuntime(t *testing.T, edits ...edit) (list []edit) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range runtimeEdits {
		e.file = filepath.Join(root, "src", e.file)
		list = append(list, e)
	}
	for _, e := range edits {
		e.file = filepath.Join(module, e.file)
		list = append(list, e)
	}
	return list
}
