package plan_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

const standbyPlan = `name: p
workers:
  switches:
    services: [southbound]
    standby: 2
    settings: {southbound: {listen: ["tcp:127.0.0.1:6653"], standby_listen: ["tcp:127.0.0.1:6654", "tcp:127.0.0.1:6655"]}}
  rest: {services: [discovery, paths, forwarding, gateway]}
`

// standing are the services of the tests of which the southbound can stand by.
func standing() []weft.Spec {
	specs := network()
	for i := range specs {
		specs[i].Standby = specs[i].Name == "southbound"
	}
	return specs
}

func TestStandby(t *testing.T) {
	p := parse(t, standbyPlan)
	if got := names(p.Instances()); got != "rest switches switches-standby switches-standby-2" {
		t.Error(got)
	}
	i, ok := p.Of("switches-standby-2")
	if !ok || i.Worker != "switches" || i.Standby != 2 || len(i.Services) != 1 {
		t.Errorf("%+v", i)
	}
	if !p.HasStandby("southbound") || p.HasStandby("paths") {
		t.Error("who has a standby")
	}
	if got := p.TransportBetween("switches", "switches"); got == plan.Inproc {
		t.Error("a worker and its standby are not one process")
	}
	text, err := p.YAML()
	if err != nil || !strings.Contains(string(text), "standby: 2") || !parse(t, string(text)).Equal(p) {
		t.Errorf("%v\n%s", err, text)
	}
	var changes []string
	for _, c := range plan.Diff(parse(t, strings.Replace(standbyPlan, "    standby: 2\n", "", 1)), p) {
		changes = append(changes, c.String())
	}
	if got := strings.Join(changes, "\n"); got != "~ worker switches: standby 0 -> 2" {
		t.Error(got)
	}
}

func TestStandbyMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"right", "", "", ""},
		{"many", "standby: 2", "standby: 5", "p.yaml:5: workers.switches.standby: want 0 to 4 processes that stand ready, not 5"},
		{"replicas", "standby: 2", "standby: 2\n    replicas: 2", "p.yaml:5: workers.switches.standby: the worker has 2 replicas, which all work; take standby out, or set replicas to 1"},
		{"name", "  rest:", "  switches-standby:", "p.yaml:5: workers.switches.standby: a worker is called switches-standby as a standby would be; rename one"},
		{"listen", "standby: 2", "standby: 2\n    listen: 127.0.0.1:7000", "p.yaml:6: workers.switches.listen: the worker and its standby cannot both listen at 127.0.0.1:7000; set the port to 0, so that each gets one of its own"},
		{"who cannot", "services: [southbound]", "services: [southbound, paths]", "p.yaml:5: workers.switches.standby: paths cannot stand by for another process; move it to a worker without a standby (those that can: southbound)"},
		{"no address", `, "tcp:127.0.0.1:6655"`, "", "p.yaml:5: workers.switches.standby: 2, but southbound cannot listen twice where the first does: list an address for each in workers.switches.settings.southbound.standby_listen (there are 1)"},
		{"the same address", "127.0.0.1:6655", "127.0.0.1:6653", "p.yaml:6: workers.switches.settings.southbound.listen: listens at tcp:127.0.0.1:6653, where southbound of worker switches (standing by) listens, too; give each an address of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("p.yaml", []byte(strings.Replace(standbyPlan, c.old, c.new, 1)))
			if err == nil {
				err = p.Check(standing())
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
