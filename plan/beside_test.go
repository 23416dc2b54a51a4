package plan_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// TestBeside: a service to which switches connect beside the southbound listens
// somewhere, and the way of its packets is shown without the stages that it
// leaves out.
func TestBeside(t *testing.T) {
	config := func(listen ...string) *besideConfig { return &besideConfig{Listen: listen} }
	specs := []weft.Spec{
		{Name: "southbound", Doc: "holds the sessions", Pipeline: true, Config: config("tcp:127.0.0.1:6653")},
		{Name: "intake", Doc: "takes packets", Beside: []string{"discovery"}, Config: config()},
		{Name: "discovery", Doc: "finds links", Stage: true}, {Name: "forwarding", Doc: "forwards", Stage: true},
	}
	text := func(settings string) string {
		return "name: t\nworkers:\n  a: {services: [southbound, discovery]}\n  b:\n    services: [intake, forwarding]\n" + settings
	}
	check := func(text string) (*plan.Plan, error) {
		p, err := plan.Parse("t", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p, p.Check(specs)
	}
	if _, err := check(text("")); err == nil || !strings.Contains(err.Error(), "listens nowhere; set workers.b.settings.intake.listen") {
		t.Errorf("without an address: %v", err)
	}
	if _, err := check("name: t\nworkers:\n  a: {services: [southbound, intake, discovery, forwarding]}\n"); err != nil {
		t.Errorf("beside the southbound, where it has nothing to do: %v", err)
	}
	if _, err := check(text("    settings: {intake: {listen: [\"tcp:127.0.0.1:6653\"]}}\n")); err == nil || !strings.Contains(err.Error(), "listens at") {
		t.Errorf("at the address of the southbound: %v", err)
	}
	p, err := check(text("    settings: {intake: {listen: [\"tcp:127.0.0.1:6663\"]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	shown := p.Text(specs)
	for _, want := range []string{"> intake", "packet-in: 1 crossing\n  a: discovery\n", "packet-in by intake: 0 crossings\n  b: forwarding\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
}

type besideConfig struct {
	Listen []string `yaml:"listen"`
}

func (*besideConfig) Validate() error { return nil }
