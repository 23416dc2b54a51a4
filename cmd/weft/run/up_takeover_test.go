package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/deploy/supervisor"
	"github.com/weft-sdn/weft/plan"
)

// TestTakeOver checks that weft up without a plan continues with the flags of
// the supervisor that the processes have outlived, and refuses to run something
// else beside them.
func TestTakeOver(t *testing.T) {
	args := []string{"worker", "--process", "all", "--bus", "nats://127.0.0.1:40281", "--data-dir", "/d", "--log-level", "debug", "--bus-token-file", "/d/bus.secret",
		"--user", "root", "--certs", "/certs", "--set", "gateway.listen=127.0.0.1:1", "--set", "hosts.age=1h"}
	cmd := UpCommand()
	o := &UpOptions{}
	p := &plan.Plan{}
	if err := o.resume(cmd, p, args); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Set, []string{"gateway.listen=127.0.0.1:1", "hosts.age=1h"}) || p.Bus.URL != "" {
		t.Errorf("set %v, bus %q", o.Set, p.Bus.URL)
	}
	for flag, want := range map[string]string{"certs": "/certs", "log-level": "debug"} {
		if got := cmd.Flags().Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", flag, got, want)
		}
	}
	external := []string{"worker", "--bus", "tls://192.0.2.1:4222", "--bus-credentials", "/c"}
	if err := o.resume(cmd, p, external); err != nil || p.Bus.URL != "tls://192.0.2.1:4222" || p.Bus.Credentials != "/c" {
		t.Errorf("an external bus: %+v, %v", p.Bus, err)
	}
	if err := cmd.Flags().Set("listen", "127.0.0.1:6653"); err != nil {
		t.Fatal(err)
	}
	err := o.takeOver(t.Context(), cmd, "/d", []supervisor.Survivor{{Name: "all", PID: 12475, Args: args}})
	if err == nil || !strings.Contains(err.Error(), "process 12475") || !strings.Contains(err.Error(), "kill 12475") {
		t.Errorf("with --listen: %v", err)
	}
}
