package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"
)

// TestLabPrograms runs programs in hosts by the commands of the real binary.
func TestLabPrograms(t *testing.T) {
	t.Parallel()
	weft := testprogram.Weft(t)
	name := fmt.Sprintf("run%d", os.Getpid())
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	run := func(status int, args ...string) (string, string) {
		t.Helper()
		cmd := exec.Command(weft, append([]string{"lab"}, args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
			t.Fatalf("weft lab %s: %v, want exit status %d\n%s%s", strings.Join(args, " "), err, status, &out, &errs)
		}
		return out.String(), errs.String()
	}
	file := filepath.Join(t.TempDir(), "net.yaml")
	write := func(programs string) {
		text := "switches: [{name: s1, fail_mode: standalone}]\ncontroller: none\n" +
			"hosts: [{name: h1, switch: s1, run: [" + programs + "]}, {name: h2, switch: s1}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nosuchprogram")
	if _, errs := run(1, "up", file, "--name", name); !strings.Contains(errs, "net.yaml:3: host h1, program nosuchprogram: there is no program nosuchprogram in PATH") {
		t.Errorf("up with no such program: %s", errs)
	}
	write(`weft version, {name: dead, command: "sh -c 'echo no luck >&2; exit 4'", restart: never}, {name: talk, command: "sh -c 'while :; do echo tick; sleep .05; done'"}`)
	out, errs := run(1, "up", file, "--name", name)
	for _, want := range []string{"host h1: program weft has died: exit status 0: ", "host h1: program dead has died: exit status 4: no luck", "the lab is up all the same"} {
		if !strings.Contains(errs, want) || !strings.Contains(out, "is up: 1 switches, 2 hosts") {
			t.Errorf("up: got %s%s; want %s", out, errs, want)
		}
	}
	var shown labShow
	out, _ = run(0, "show", "--name", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.Hosts) != 2 || len(shown.Hosts[0].Programs) != 3 {
		t.Fatalf("show: %s, %v", out, err)
	}
	if p := shown.Hosts[0].Programs[2]; p.Name != "talk" || p.State != keeper.ProgramRunning || p.PID == 0 {
		t.Errorf("show: %+v", p)
	}
	if out, _ := run(0, "show", "--name", name); !strings.Contains(out, "talk") || !strings.Contains(out, "running") {
		t.Errorf("show:\n%s", out)
	}
	if out, _ := run(0, "list"); !strings.Contains(out, " of 3 run") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ := run(0, "logs", "h1/dead", "--name", name); !strings.HasPrefix(out, "no luck\n[weft lab] exit status 4 after ") {
		t.Errorf("logs of one:\n%s", out)
	}
	if out, _ := run(0, "logs", "--name", name, "-n", "1"); !strings.Contains(out, "h1/talk: tick\n") || strings.Contains(out, "no luck") {
		t.Errorf("logs of all:\n%s", out)
	}
	for args, want := range map[string]string{
		"logs h9":   `has no host "h9"; allowed: h1, h2`,
		"logs h1/x": `host h1 runs no program "x"; allowed: weft, dead, talk`,
		"logs /x":   `has no host ""`,
		"logs h2":   "host h2 runs no programs: run: in a topology file gives it some",
	} {
		if _, errs := run(1, append(strings.Fields(args), "--name", name)...); !strings.Contains(errs, want) {
			t.Errorf("%s: got %s; want %s", args, errs, want)
		}
	}

	// Followed until the lab is down.
	follow := exec.Command(weft, "lab", "logs", "-f", "-n", "0", "--name", name)
	followed, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(followed)
	for ticks := 0; ticks < 3 && lines.Scan(); {
		if lines.Text() == "h1/talk: tick" {
			ticks++
		}
	}
	run(0, "down", name)
	for lines.Scan() {
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f: %v", err)
	}
	if lab.Exists(name) {
		t.Error("down leaves something")
	}
}
