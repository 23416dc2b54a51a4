package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// An app is a stage where the plan says, or else before forwarding; its
// treatment is written, read, compared and drawn.
func TestApps(t *testing.T) {
	parse := func(text string) *plan.Plan {
		t.Helper()
		p, err := plan.Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := parse(at("apps: {zebra: {absent: drop, timeout: 50ms}, blocker: }\n", ""))
	if got := p.Stages(network()); !slices.Equal(got, []string{"discovery", "blocker", "zebra", "forwarding"}) {
		t.Errorf("without a pipeline the stages are %v", got)
	}
	if a := p.App("blocker"); a == nil || a.Absent != plan.AbsentHold || a.Timeout != time.Second {
		t.Errorf("blocker: %+v; want hold, 1s", a)
	}
	if a := p.App("zebra"); a == nil || a.Absent != plan.AbsentDrop || a.Timeout != 50*time.Millisecond || p.App("lion") != nil {
		t.Errorf("zebra: %+v; lion: %+v", a, p.App("lion"))
	}
	text, err := p.YAML()
	if err != nil || !parse(string(text)).Equal(p) {
		t.Errorf("read again, it is another plan (%v):\n%s", err, text)
	}
	want := "app blocker: after discovery, before zebra; packets wait while it is absent or does not answer within 1s\n"
	if drawn := p.Text(network()); !strings.Contains(drawn, want) {
		t.Errorf("the drawing does not say %q:\n%s", want, drawn)
	}
	if !strings.Contains(p.SVG(network()), "app blocker (stage 2)") {
		t.Error("the picture does not show where the app is")
	}
	q := parse(at("pipeline: [blocker, discovery, forwarding]\napps: {blocker: {absent: skip}}\n", ""))
	if got := q.Stages(network()); got[0] != "blocker" {
		t.Errorf("the stages are %v; want those of pipeline", got)
	}
	var lines []string
	for _, c := range plan.Diff(p, q) {
		lines = append(lines, c.String())
	}
	wanted := []string{
		"~ pipeline: none -> blocker, discovery, forwarding",
		"~ apps.blocker: absent hold, timeout 1s -> absent skip, timeout 1s",
		"~ apps.zebra: absent drop, timeout 50ms -> none",
	}
	if !slices.Equal(lines, wanted) {
		t.Errorf("changes are %q; want %q", lines, wanted)
	}
}

// TestAppsWithOneMark: apps whose entries and groups could not be told apart are
// refused.
func TestAppsWithOneMark(t *testing.T) {
	marks := map[flow.AppMark]string{}
	for i := 0; ; i++ {
		name := fmt.Sprint("a", i)
		mark := flow.MarkOf(name) & 0xfff
		if other := marks[mark]; other != "" {
			_, err := plan.Parse("p", fmt.Appendf(nil, "name: p\napps:\n  %s: {absent: skip}\n  %s: {absent: skip}\nworkers:\n  w: {services: [southbound]}\n", other, name))
			if err == nil || !strings.Contains(err.Error(), "rename one") {
				t.Errorf("%s and %s: %v", other, name, err)
			}
			return
		}
		marks[mark] = name
	}
}
