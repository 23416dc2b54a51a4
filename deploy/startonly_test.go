package deploy_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// naming is a configuration with keys that name programs and files.
type naming struct {
	Pace    int               `yaml:"pace"`
	Program string            `yaml:"program" start:"true"`
	Options []string          `yaml:"options" start:"true"`
	Others  map[string]string `yaml:"others" start:"true"`
	Listen  []string          `yaml:"listen" start:"file"`
	Below   struct {
		Directory string `yaml:"directory" start:"true"`
	} `yaml:"below"`
}

func (*naming) Validate() error { return nil }

// TestStartOnly: neither a configuration nor a plan that comes through the
// northbound, nor one of the history, sets what is decided at start.
func TestStartOnly(t *testing.T) {
	c := newCluster(t, []weft.Spec{{Name: "live", Config: &naming{Program: "vsctl"}, Live: []string{"*"}}, {Name: "later", Config: &naming{}}, {Name: "plain"}},
		map[string]func(*actor){"live": func(a *actor) {
			weft.OnConfig(a.env, func(context.Context, *naming, *naming) error { return nil })
		}})
	const given = "live: {program: given, listen: [\"tcp:127.0.0.1:1\", \"unix:/run/a\"]}"
	c.apply("{name: a, events: grpc, workers: {w0: {services: [live], env: {A: b}}, w1: {services: [plain]}}, config: {" + given + "}}")
	c.startAll()
	n := c.process("w0").node
	config := func(text string) error {
		_, err := n.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: text, LimitMs: 10_000})
		return err
	}
	inForce := func() string {
		t.Helper()
		p, err := n.GetPlan(t.Context(), &api.GetPlanRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Text
	}
	before := inForce()
	refused := func(what string, err error) {
		t.Helper()
		if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "decided at start") {
			t.Errorf("%s: %v; want that it is decided at start", what, err)
		}
		if now := inForce(); now != before {
			t.Fatalf("%s: the plan is now %s", what, now)
		}
	}
	for _, text := range []string{
		"live: {program: /tmp/x, listen: [\"tcp:127.0.0.1:1\", \"unix:/run/a\"]}\n",
		"live: {pace: 2}\n", // takes the program back to the default
		"live: {program: given, listen: [\"unix:/etc/passwd\"]}\n",
		"live: {program: given, listen: [\"unix:/run/a\", \"unix:/etc/passwd\"]}\n",
		"live: {program: given, listen: [\"unix:/run/a\"], options: [--exec]}\n",
		"live: {program: given, listen: [\"unix:/run/a\"], others: {\"1\": x}}\n",
		"live: {program: given, listen: [\"unix:/run/a\"], below: {directory: /}}\n",
	} {
		refused(text, config(text))
	}
	for _, text := range []string{
		"workers: {w0: {services: [live], env: {A: b}}, w1: {services: [plain]}}, config: {live: {program: /tmp/x}}",
		"workers: {w0: {services: [live], settings: {live: {program: /tmp/x}}}, w1: {services: [plain]}}, config: {" + given + "}",
		"workers: {w0: {services: [live], env: {PATH: /tmp}}, w1: {services: [plain]}}, config: {" + given + "}",
		"workers: {w0: {services: [live]}, w1: {services: [plain], env: {A: c}}}, config: {" + given + "}",
		"workers: {w0: {services: [live]}, new: {services: [plain], env: {LD_PRELOAD: /tmp/x}}}, config: {" + given + "}",
		"workers: {w0: {services: [live]}, new: {services: [later, plain], settings: {later: {program: /tmp/x}}}}, config: {" + given + "}",
		"workers: {w0: {services: [live]}, new: {services: [later, plain], settings: {later: {listen: [\"unix:/tmp/x\"]}}}}, config: {" + given + "}",
		"bus: {url: \"nats://127.0.0.1:1\"}, workers: {w0: {services: [live]}, w1: {services: [plain]}}, config: {" + given + "}",
		"bus: {url: \"nats://127.0.0.1:1\", credentials: /etc/shadow}, workers: {w0: {services: [live]}, w1: {services: [plain]}}, config: {" + given + "}",
	} {
		_, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: "{name: b, events: grpc, " + text + "}"})
		refused(text, err)
		_, err = n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: "{name: b, events: grpc, " + text + "}", DryRun: true})
		refused("dry run of "+text, err)
	}

	// What was given at start may be said again, and all else changed.
	if err := config("live: {program: given, pace: 3, listen: [\"tcp:127.0.0.1:2\", \"unix:/run/a\"]}\n"); err != nil {
		t.Error(err)
	}
	moved := "{name: b, events: grpc, workers: {w0: {services: [plain], env: {A: b}}, w1: {services: [live, later], env: {A: b}}}}"
	if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: moved}); err != nil {
		t.Error(err)
	}
}
