package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHistory makes a repository and has .ci/history judge its commits.
func TestHistory(t *testing.T) {
	script, err := filepath.Abs("../../.ci/history")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(message string) {
		t.Helper()
		git("add", "-A")
		git("commit", "-q", "-m", message)
	}
	judge := func(base string) (string, bool) {
		t.Helper()
		cmd := exec.Command(script, base)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}

	git("init", "-q")
	write(".gitattributes", "made.go linguist-generated\n")
	write("a", "one\n")
	write("b", "one\n")
	commit("begin")
	write("a", "two\n")
	commit("go on")
	base := git("rev-parse", "HEAD")
	write("b", "two\n")
	write("made.go", strings.Repeat("line\n", 5000))
	commit("change b")
	git("mv", "b", "c")
	commit("rename b")
	if out, ok := judge(base); !ok || out != "" {
		t.Errorf("ordinary commits, a generated file and a rename: refused or warned:\n%s", out)
	}
	sound := git("rev-parse", "HEAD")

	write("a", "one\n") // its version before the base
	commit("add a feature")
	if out, ok := judge(base); ok || !strings.Contains(out, `"add a feature" returns a to an older version`) {
		t.Errorf("a file returned to an older version: accepted, or for another reason:\n%s", out)
	}
	git("commit", "-q", "--amend", "-m", "restore a")
	if out, ok := judge(base); !ok {
		t.Errorf("a file restored on purpose: refused:\n%s", out)
	}
	git("reset", "-q", "--hard", sound)

	write("d", strings.Repeat("line\n", 401))
	commit("write much")
	if out, ok := judge(base); !ok || !strings.Contains(out, "401 lines, more than 400") {
		t.Errorf("401 lines: want a warning:\n%s", out)
	}
	write("e", strings.Repeat("line\n", 1501))
	commit("write too much")
	if out, ok := judge(base); ok || !strings.Contains(out, "1501 lines, more than 1500") {
		t.Errorf("1501 lines: want them refused:\n%s", out)
	}
	if out, ok := judge("0123456789012345678901234567890123456789"); ok || !strings.Contains(out, "fetch the whole history") {
		t.Errorf("a base that is not there:\n%s", out)
	}
}
