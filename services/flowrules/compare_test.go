package flowrules

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

func TestSame(t *testing.T) {
	base := flow.Entry{
		Priority: 1, Cookie: flow.NewCookie(flow.OwnerOperator, 3, 9), Flags: flow.FlagSendRem | flow.FlagReset,
		Apply: []flow.Action{{Kind: flow.ActionOutput, Arg: 2, MaxLen: 128}},
	}
	for name, c := range map[string]struct {
		change  func(*flow.Entry)
		version string
		want    bool
	}{
		"as it is":                     {func(*flow.Entry) {}, "1.3", true},
		"generation of an earlier run": {func(e *flow.Entry) { e.Cookie = flow.NewCookie(flow.OwnerOperator, 2, 9) }, "1.3", true},
		"another owner":                {func(e *flow.Entry) { e.Cookie = flow.NewCookie(flow.OwnerHosts, 3, 9) }, "1.3", false},
		"flags that are not kept":      {func(e *flow.Entry) { e.Flags = flow.FlagSendRem }, "1.3", true},
		"a flag that is kept":          {func(e *flow.Entry) { e.Flags = 0 }, "1.3", false},
		"OpenFlow 1.0 tells no flags":  {func(e *flow.Entry) { e.Flags = 0 }, "1.0", true},
		"length of no meaning":         {func(e *flow.Entry) { e.Apply = []flow.Action{flow.Output(2)} }, "1.3", true},
		"another port":                 {func(e *flow.Entry) { e.Apply = []flow.Action{flow.Output(3)} }, "1.3", false},
		"another timeout":              {func(e *flow.Entry) { e.IdleTimeout = 5 }, "1.3", false},
	} {
		have := base.Clone()
		c.change(&have)
		if got := same(&base, &have, c.version); got != c.want {
			t.Errorf("%s: same is %v", name, got)
		}
	}
	if base.Apply[0].MaxLen != 128 {
		t.Error("comparing has changed the entry")
	}
}

func TestRightTimed(t *testing.T) {
	now := time.Unix(1000, 0)
	want := newRule(&flow.Entry{HardTimeout: 600}, now)
	want.expires = now.Add(300 * time.Second)
	for name, c := range map[string]struct {
		hard uint16
		age  time.Duration
		want bool
	}{
		"installed in time":         {600, 300 * time.Second, true},
		"installed with the rest":   {320, 20 * time.Second, true},
		"ends a second later":       {600, 299 * time.Second, true},
		"timer started anew":        {600, 10 * time.Second, false},
		"ends too early":            {300, 10 * time.Second, false},
		"never ends":                {0, 300 * time.Second, false},
		"told in the switch's time": {300, 900 * time.Millisecond, true},
	} {
		have := seen{flow.Entry{HardTimeout: c.hard}, c.age}
		if got := want.matchesReading(&have, now, "1.3"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRemaining(t *testing.T) {
	now := time.Unix(1000, 0)
	for left, want := range map[time.Duration]uint16{
		300 * time.Second: 300, 2300 * time.Millisecond: 3, time.Millisecond: 1, 0: 1, -time.Hour: 1, 100 * time.Hour: 65535,
	} {
		if got := remaining(now.Add(left), now); got != want {
			t.Errorf("%v left: %d s", left, got)
		}
	}
}

func TestBackOff(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 5, 2: 20, 3: 80, 4: 320, 60: 3600} {
		if got := refusalPause(&Config{RetryAfter: 5 * time.Second}, n); got != want*time.Second {
			t.Errorf("after %d failures %v, want %v", n, got, want*time.Second)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		version   string
		transient bool
		typ, code uint32
		want      failureKind
	}{
		{"1.3", true, 0, 0, failedLate}, {"1.3", false, 5, 1, failedFull}, {"1.0", false, 3, 0, failedFull},
		{"1.3", false, 3, 0, failedRefused}, {"1.0", false, 5, 1, failedRefused}, {"1.3", false, 0, 0, failedRefused},
	} {
		if got := kindOf(c.version, c.transient, c.typ, c.code); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
