package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

const appliedLab = `
# a comment that is kept
name: applied
controller: none
x-position: [1, 2]
switches:
  - {name: s1, fail_mode: standalone, x-position: [10, 20]}
  - {name: s2, fail_mode: standalone}
  - {name: s3, fail_mode: standalone}
hosts:
  - {name: h1, switch: s1}
  - {name: h2, switch: s2}
  - {name: h3, switch: s3}
links:
  - {a: s1, b: s2}
  - {a: s2, b: s3, rate: 100mbit}
`

// With a host, a link and a program added, a switch deleted, a host moved off it, and
// rate, delay and address changed.
const changedLab = `
name: applied
controller: none
switches:
  - {name: s0, fail_mode: standalone}
  - {name: s1, fail_mode: standalone}
  - {name: s2, fail_mode: standalone}
hosts:
  - {name: h0, switch: s0, manage: true, run: [sleep 1000]}
  - {name: h1, switch: s1}
  - {name: h2, switch: s2}
  - {name: h3, switch: s0, ipv4: 10.0.0.33/24}
links:
  - {a: s2, b: s0, delay: 5ms}
  - {a: s1, b: s2}
`

// A changed file changes what differs alone: not a packet is lost between others.
func TestApply(t *testing.T) {
	t.Parallel()
	l := upForTest(t, parsed(t, appliedLab, nil), Options{})
	if text, err := l.Text(); err != nil || string(text) != appliedLab {
		t.Errorf("the lab's file is %q, %v", text, err)
	}
	wantPing(t, l, "h1", "h2", traffic.PingOptions{Count: 1}, 1, 1)
	wantPing(t, l, "h1", "h3", traffic.PingOptions{Count: 1}, 1, 1)
	apply := func(text string, opt ApplyOptions) *topology.Difference {
		t.Helper()
		opt.Name = l.Name()
		d, err := Apply(t.Context(), "f.yaml", []byte(text), opt)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := apply(changedLab, ApplyOptions{DryRun: true}); len(d.Added) != 3 || len(d.Deleted) != 2 {
		t.Errorf("dry run: %+v", d)
	}
	if d := apply(appliedLab, ApplyOptions{}); !d.None() {
		t.Errorf("the same file differs: %+v", d)
	}
	pinged := make(chan traffic.PingResult, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		r, err := l.Ping(ctx, "h1", "h2", traffic.PingOptions{Count: 400, Interval: 10 * time.Millisecond})
		if err != nil {
			t.Error(err)
		}
		pinged <- r
	}()
	time.Sleep(100 * time.Millisecond)
	apply(changedLab, ApplyOptions{})
	if r := <-pinged; r.Received != r.Sent {
		t.Errorf("of %d packets between hosts that were not touched, %d came", r.Sent, r.Received)
	}
	l, err := Open(l.Name())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := l.Text(); err != nil || string(text) != changedLab {
		t.Errorf("the lab's file is %q, %v", text, err)
	}
	if d := apply(changedLab, ApplyOptions{}); !d.None() {
		t.Errorf("applied again, it differs: %+v", d)
	}
	if r := wantPing(t, l, "h1", "h3", traffic.PingOptions{Count: 3}, 3, 3); r.Min < 10 {
		t.Errorf("over a link of 5 ms and back it took %v ms", r.Min)
	}
	wantPing(t, l, "h0", "h3", traffic.PingOptions{Count: 1}, 1, 1)
	if bridges, err := l.VSCtl(t.Context(), "list-br"); err != nil || strings.Contains(bridges, "s3") {
		t.Errorf("switches %q, %v", bridges, err)
	}
	if p := l.Programs(t.Context()); len(p) != 1 || p[0].State != keeper.ProgramRunning {
		t.Errorf("programs %+v", p)
	}
	if _, ok := l.Management("h0"); !ok {
		t.Error("h0 is not managed")
	}
	apply(appliedLab, ApplyOptions{})
	if l, err = Open(l.Name()); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h1", "h3", traffic.PingOptions{Count: 1}, 1, 1)
	if p := l.Programs(t.Context()); len(p) != 0 {
		t.Errorf("programs %+v", p)
	}
}

// Wherever an apply fails or is killed, another completes it, to the same or to
// another file.
func TestApplyCompletes(t *testing.T) {
	t.Parallel()
	l := upForTest(t, parsed(t, appliedLab, nil), Options{})
	is, other := appliedLab, changedLab
	for at := range 8 {
		if err := applyUntil(t, l.Name(), other, at, at%4 < 2); err == nil {
			t.Fatalf("step %d: nothing was cut off", at)
		}
		text := is
		if at%2 == 0 {
			text, is, other = other, other, is
		}
		if d, err := Apply(t.Context(), "f.yaml", []byte(text), ApplyOptions{Name: l.Name()}); err != nil || d.None() {
			t.Fatalf("step %d: %+v, %v", at, d, err)
		}
		if d, err := Apply(t.Context(), "f.yaml", []byte(text), ApplyOptions{Name: l.Name(), DryRun: true}); err != nil || !d.None() {
			t.Fatalf("step %d: %+v, %v", at, d, err)
		}
		now, err := Open(l.Name())
		if err != nil {
			t.Fatal(err)
		}
		wantPing(t, now, "h1", "h3", traffic.PingOptions{Count: 1}, 1, 1)
		wantPing(t, now, "h3", "h2", traffic.PingOptions{Count: 1}, 1, 1)
	}
}

// applyUntil applies a file up to a step, where the process is killed or the
// context ends.
func applyUntil(t *testing.T, name, text string, step int, kill bool) error {
	t.Helper()
	if kill {
		cmd := exec.Command(os.Args[0], "-test.run=^TestApplyKilled$")
		cmd.Env = append(os.Environ(), "LAB_APPLY="+name, "LAB_APPLY_TEXT="+text, "LAB_APPLY_STEPS="+strings.Repeat("x", step))
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%v: %s", err, out)
		}
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Apply(ctx, "f.yaml", []byte(text), ApplyOptions{Name: name, Progress: func(Step) {
		if step--; step < 0 {
			stop()
		}
	}})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return err
}

// In a process of its own, which TestApplyCompletes starts: it kills itself at a step.
func TestApplyKilled(t *testing.T) {
	name := os.Getenv("LAB_APPLY")
	if name == "" {
		return
	}
	step := len(os.Getenv("LAB_APPLY_STEPS"))
	_, err := Apply(t.Context(), "f.yaml", []byte(os.Getenv("LAB_APPLY_TEXT")), ApplyOptions{Name: name, Progress: func(Step) {
		if step--; step < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// A lab that is taken down while a file is applied is gone, with all that the apply has made;
// a file made from an older lab is not applied, however long it waits for others.
func TestApplyDown(t *testing.T) {
	t.Parallel()
	l := upForTest(t, parsed(t, appliedLab, nil), Options{})
	made, err := l.Revision()
	if err != nil {
		t.Fatal(err)
	}
	late, down := make(chan error, 1), make(chan error, 1)
	begin := func() {
		go func() {
			_, err := Apply(t.Context(), "f.yaml", []byte(appliedLab), ApplyOptions{Name: l.Name(), MadeFrom: made})
			late <- err
		}()
		time.Sleep(50 * time.Millisecond)
	}
	opt := ApplyOptions{Name: l.Name(), MadeFrom: made, Progress: func(Step) {
		if begin != nil {
			begin()
			begin = nil
		}
	}}
	if _, err := Apply(t.Context(), "f.yaml", []byte(changedLab), opt); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("made from an older lab: %v", err)
	}
	step := 0
	_, err = Apply(t.Context(), "f.yaml", []byte(appliedLab), ApplyOptions{Name: l.Name(), Progress: func(s Step) {
		if step++; step != 5 {
			return
		}
		go func() { down <- Down(t.Context(), l.Name()) }()
		for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(layout.EndingFile(l.Name())); err == nil {
				return
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "is being taken down") {
		t.Errorf("applied while the lab was taken down: %v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	wantNothing(t, l.Name())
}
