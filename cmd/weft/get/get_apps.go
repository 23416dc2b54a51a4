package get

import (
	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/plan"
)

// appsView is what weft get apps says.
type appsView struct {
	Apps []appView `json:"apps"`
}

// appView is an app: attached to a worker, or absent though the plan has it.
type appView struct {
	Name      string `json:"name"`
	State     string `json:"state"` // attached or absent
	Kind      string `json:"kind"`
	Absent    string `json:"absent,omitempty"` // of a stage: what becomes of its packets meanwhile
	Worker    string `json:"worker,omitempty"`
	Transport string `json:"transport,omitempty"`
	Peer      string `json:"peer,omitempty"`
	Since     string `json:"since,omitempty"`
	Packets   uint64 `json:"packets"`
	Answered  uint64 `json:"answered"`
	Timeouts  uint64 `json:"timeouts"`
	Dropped   uint64 `json:"dropped"`
	Skipped   uint64 `json:"skipped"`
}

func getApps(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "apps",
		Short: "List the apps that take part from outside",
		Long: `List the apps: services that live outside Weft and attach to the port of any
worker (weft get workers -o json shows the addresses), and the stages of the plan
whose app is absent; IF ABSENT is what becomes of packets then. PACKETS were sent
to the app, TIMEOUTS of them not answered in time; DROPPED were not sent because
an observer is too slow, SKIPPED because they do not meet the app's filter.`,
		Example: `  weft get apps
  weft get apps -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
		if err != nil {
			return cli.View{}, err
		}
		v := appsView{Apps: []appView{}}
		var planned *plan.Plan
		if m.GetGeneration() > 0 {
			text, err := c.GetPlan(c.Ctx, &api.GetPlanRequest{})
			if cli.Denied(err) {
				err = nil // the plan is the administrator's; without it there are those that are attached
			} else if err == nil {
				planned, err = plan.Parse("the plan in force", []byte(text.GetText()))
			}
			if err != nil {
				return cli.View{}, err
			}
		}
		attached := map[string]bool{}
		for _, w := range m.GetWorkers() {
			for _, a := range w.Apps {
				attached[a.Name] = true
				row := appView{
					Name: a.Name, State: "attached", Kind: a.Kind, Worker: w.Process, Transport: a.Transport, Peer: a.Peer, Since: a.Since,
					Packets: a.Packets, Answered: a.Answered, Timeouts: a.Timeouts, Dropped: a.Dropped, Skipped: a.Skipped,
				}
				if planned != nil && planned.App(a.Name) != nil && a.Kind == plan.AppStage {
					row.Absent = planned.App(a.Name).Absent
				}
				v.Apps = append(v.Apps, row)
			}
		}
		if planned != nil {
			for _, a := range planned.Apps {
				if !attached[a.Name] && a.Kind == plan.AppStage {
					v.Apps = append(v.Apps, appView{Name: a.Name, State: "absent", Kind: "stage", Absent: a.Absent})
				}
			}
		}
		return cli.View{Value: v, Text: func(t *cli.Table) {
			t.Row("APP", "STATE", "KIND", "IF ABSENT", "WORKER", "BY", "FROM", "PACKETS", "ANSWERED", "TIMEOUTS", "DROPPED", "SKIPPED", "SINCE")
			for _, a := range v.Apps {
				t.Row(a.Name, a.State, a.Kind, a.Absent, a.Worker, a.Transport, a.Peer, a.Packets, a.Answered, a.Timeouts, a.Dropped, a.Skipped, cli.When(a.Since))
			}
		}}, nil
	})
}
