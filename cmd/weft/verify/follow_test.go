package verify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/plan"
)

// update is one that moves some shards and saves a share of 1,000 us.
func update(moves int, share float64) *planning.Update {
	u := &planning.Update{Weighed: true, Gain: 1000 * share, PaysBack: 60, Update: &plan.Update{Before: 1000, After: 1000 - 1000*share}}
	for range moves {
		u.Update.Moves = append(u.Update.Moves, plan.Move{Shard: "paths", From: "s1:a", To: "s2:b"})
	}
	return u
}

// Moves are made if they pay, within their bounds, and the reason is said.
func TestDecide(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	never, breaks := update(2, 0.2), update(1, -0.1)
	never.PaysBack, breaks.PaysBack = -1, -1
	breaks.OldBreak = []string{"server s1 has too little memory"}
	stuck := update(0, 0)
	stuck.OldBreak = breaks.OldBreak
	night := []window{{22 * time.Hour, 5 * time.Hour}}
	for name, c := range map[string]struct {
		b         bounds
		u         *planning.Update
		lately    int
		refused   bool
		want, why string
	}{
		"good":         {bounds{gain: 0.05, moves: 4}, update(2, 0.2), 2, false, apply, "2 moves save 20 % of the latency between servers, and pay back in 60 s"},
		"a dry run":    {bounds{dry: true, gain: 0.05}, update(2, 0.2), 9, false, propose, "2 moves save 20 %"},
		"nothing":      {bounds{moves: 4}, update(0, 0), 0, false, keep, "nothing better"},
		"little":       {bounds{gain: 0.3, moves: 4}, update(1, 0.2), 0, false, keep, "less than the 30 %"},
		"never":        {bounds{moves: 4}, never, 0, false, keep, "never pays them back"},
		"too many":     {bounds{moves: 4}, update(2, 0.2), 3, false, wait, "3 in the last hour, and 4 may be"},
		"by night":     {bounds{moves: 4, within: night}, update(2, 0.2), 0, false, wait, "outside of the windows"},
		"was put back": {bounds{moves: 4}, update(2, 0.2), 0, true, keep, "put back"},
		"it breaks":    {bounds{gain: 0.05, moves: 4}, breaks, 0, false, apply, "too little memory; 1 moves mend that"},
		"it is stuck":  {bounds{moves: 4}, stuck, 0, false, keep, "nothing better was found"},
	} {
		if got, why := c.b.decide(c.u, c.lately, c.refused, noon); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s: %s; want %s: %s", name, got, why, c.want, c.why)
		}
	}
	for hour, want := range map[int]bool{21: false, 22: true, 23: true, 0: true, 4: true, 5: false, 12: false} {
		if got := night[0].has(noon.Add(time.Duration(hour-12) * time.Hour)); got != want {
			t.Errorf("at %d: %v", hour, got)
		}
	}
}

// A step that makes packet-ins wait longer is put back, and not tried again; one that does not
// stays; a dry run changes nothing.
func TestSteps(t *testing.T) {
	is, now, put := seen{load: planning.Load{PacketIns: 100}, crossing: 200}, time.Unix(1_000_000, 0), []string{}
	f := &follower{bounds: bounds{gain: 0.05, moves: 4}, running: planning.Text{Text: []byte("a")}}
	f.look = func(context.Context) (seen, error) { return is, nil }
	f.now = func() time.Time { return now }
	f.put = func(_ context.Context, text planning.Text) error { put = append(put, string(text.Text)); return nil }
	f.next = func(_ context.Context, running planning.Text, _ planning.Load) (planning.Text, *planning.Update, error) {
		if string(running.Text) == "b" {
			return running, update(0, 0), nil
		}
		return planning.Text{Text: []byte("b")}, update(3, 0.2), nil
	}
	step := func(want string) Step {
		t.Helper()
		now = now.Add(5 * time.Minute)
		s, err := f.step(t.Context())
		if err != nil || s.Verdict != want || s.Why == "" {
			t.Errorf("%+v, %v; want %s", s, err, want)
		}
		return s
	}
	f.dry = true
	step(propose)
	f.dry = false
	step(apply)
	is.crossing = 215 // a little longer
	step(keep)
	f.running = planning.Text{Text: []byte("a")}
	step(wait)
	now = now.Add(time.Hour)
	is.crossing = 200
	step(apply)
	is.crossing = 300
	if s := step(putBack); !strings.Contains(s.Why, "waits 300 us for messages between processes, and waited 200 us") {
		t.Errorf("%+v", s)
	}
	is.crossing = 200
	now = now.Add(time.Hour)
	step(keep)
	if got := strings.Join(put, ""); got != "bba" || string(f.running.Text) != "a" {
		t.Errorf("put %s, and %s runs", got, f.running.Text)
	}
	f.look = func(context.Context) (seen, error) { return seen{}, errors.New("away") }
	if _, err := f.step(t.Context()); err == nil {
		t.Error("nothing was measured: no error")
	}
}

// A plan is made anew for the load, with a head by which it can be made again, and compared
// with the one that runs.
func TestNext(t *testing.T) {
	var text bytes.Buffer
	c := planner.PlanCommand()
	c.SetArgs([]string{"make", "--network", "ring:n=6", "--servers", "2", "--packet-ins", "100", "--steps", "2000", "--runs", "2"})
	c.SetOut(&text)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	quiet := &cobra.Command{}
	quiet.SetErr(io.Discard)
	running := planning.Text{Source: "plan.yaml", Text: text.Bytes()}
	next, u, err := planning.Next(t.Context(), planner.Sources(quiet), running, planning.Load{PacketIns: 4000, Changes: 0.25})
	if err != nil || !u.Weighed || u.Update == nil {
		t.Fatalf("%+v, %v", u, err)
	}
	head, _, _ := strings.Cut(string(next.Text), "\n")
	if strings.Count(head, "--packet-ins=") != 1 || !strings.Contains(head, `--packet-ins="4000" --changes="0.25"`) || strings.Contains(head, "--current") || !strings.Contains(head, `--steps="2000"`) {
		t.Errorf("head %q", head)
	}
	again, u, err := planning.Next(t.Context(), planner.Sources(quiet), next, planning.Load{PacketIns: 4000, Changes: 0.25})
	if err != nil || len(u.Update.Moves) > 0 || string(again.Text) != string(next.Text) {
		t.Errorf("again: %v, %+v", err, u)
	}
	if _, _, err := planning.Next(t.Context(), planner.Sources(quiet), planning.Text{Source: "two.yaml", Text: []byte(twoWorkers)}, planning.Load{PacketIns: 10}); err == nil || !strings.Contains(err.Error(), "head does not say") {
		t.Errorf("a plan that was not made: %v", err)
	}
}

// What a packet-in waits for messages is by rates and medians of what crosses processes.
func TestSeen(t *testing.T) {
	m, err := asPredicted().look(t)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.looked()
	if err != nil || s.load.PacketIns < 900 || s.load.PacketIns > 1100 || s.crossing < 130 || s.crossing > 170 {
		t.Errorf("%+v, %v", s, err)
	}
	m.crossings = map[crossing]*count{}
	if _, err := m.looked(); err == nil || !strings.Contains(err.Error(), "no packet-ins") {
		t.Errorf("without packet-ins: %v", err)
	}
	for want, flags := range map[string][]string{
		"--gain 2": {"--gain", "2"}, "--moves 0": {"--moves", "0"}, `--window "night"`: {"--window", "night"}, "--interval 1ms": {"--interval", "1ms"}, "--seconds 0": {"--seconds", "0"}, "--count -1": {"--count", "-1"},
	} {
		c := FollowCommand()
		c.SetArgs(append([]string{"plan.yaml"}, flags...))
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", flags, err)
		}
	}
}
