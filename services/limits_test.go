package services_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/wefttest"
)

// unreported is the numbers of the configuration of which health says nothing when they are
// reached, by the reason.
var unreported = map[string][]string{
	"whoever makes one more is refused, with the key": {
		"balancer.vips", "balancer.members", "chain.chains", "firewall.max_rules", "flowrules.max_flows", "l2vpn.circuits", "nat.gateways",
		"qos.policies", "router.routers", "router.addresses", "router.routes", "scp.instances", "scp.endpoints", "tenants.tenants", "tenants.members", "tunnels.tunnels", "tunnels.steers",
	},
	"the first and last of numbers that are given; whoever needs one more is refused, with the key": {
		"chain.first_tag", "chain.last_tag", "l2vpn.first_label", "l2vpn.last_label", "tenants.first_segment", "tenants.last_segment", "tunnels.first_label", "tunnels.last_label",
	},
	"it paces what Weft sends or does; nothing is dropped by it": {
		"chain.probe_rate", "discovery.probes_per_second", "discovery.rate", "flowrules.max_batch", "flowrules.rate", "flowrules.parallel", "flowrules.retries", "l2vpn.probe_rate", "nodes.bfd_rate",
		"southbound.probe_rate", "stats.parallel", "stats.flows_every", "stats.slow_factor", "stats.metric_switches",
	},
	"it says from when on something counts as moving, flapping, late or loaded, and that has a state of its own": {
		"discovery.flap.downs", "heartbeat.lost_after", "hosts.moves", "scp.errors", "scp.overload", "tunnels.optimise.gain",
	},
	"it is no limit": {
		"discovery.reference_kbps", "discovery.latency.weight", "gateway.audit_size", "gateway.audit_files", "intake.number", "l2vpn.history", "scp.vlan", "southbound.standbys", "southbound.standby",
	},
	"beyond it packets are judged by the controller, and none is dropped; weft firewall status says so": {"firewall.table_limit"},
	"health names the ports that are limited by it (ListLimits), and what is let through": {
		"southbound.flood_rate", "southbound.flood_factor", "southbound.flood_floor", "intake.flood_factor", "intake.flood_floor",
	},
	"a switch's session ends by it, and health says so with the reason, or it is made later": {
		"southbound.queue_bytes", "southbound.session_bytes", "southbound.total_bytes", "southbound.new_sessions_per_second",
	},
	"port status beyond it waits, and none is dropped":                                  {"southbound.port_events_per_second"},
	"a meter of the switch drops beyond it; weft l2vpn list shows how much, by circuit": {"l2vpn.storm_kbps"},
	"as gateway.max_connections and gateway.max_octets, which stand for both":           {"gateway.max_connections_per_address", "gateway.max_octets_per_address"},
}

// TestLimitsAreReported: health learns when a limit of the configuration is reached that drops
// traffic or turns somebody away: each number of the configuration is noted where it is reached
// (object.Limits), or stands above with the reason why not.
func TestLimitsAreReported(t *testing.T) {
	exempt := map[string]bool{}
	for _, list := range unreported {
		for _, key := range list {
			exempt[key] = true
		}
	}
	known := map[string]bool{}
	for _, spec := range services.All(gateway.Process{}) {
		if spec.Config == nil || reflect.TypeOf(spec.Config).String() == "*policy.Config" {
			continue // package policy refuses one more with the key
		}
		reached := notedIn(t, spec.Name)
		if spec.Name == "intake" {
			reached += notedIn(t, "southbound")
		}
		for _, key := range wefttest.Keys(spec.Config) {
			if !number(spec.Config, key) {
				continue
			}
			name := spec.Name + "." + key
			known[name] = true
			switch noted := strings.Contains(reached, `"`+name+`"`); {
			case noted && exempt[name]:
				t.Errorf("%s is noted when it is reached; take it out of the list of those that are not", name)
			case !noted && !exempt[name]:
				t.Errorf("%s: nothing notes when it is reached; call Reach of object.Limits there, or say here why health need not warn", name)
			}
		}
	}
	for name := range exempt {
		if !known[name] {
			t.Errorf("there is no number %s in the configuration", name)
		}
	}
}

// notes matches lines that note a limit that is reached, or give the key for that.
var notes = regexp.MustCompile(`\b[Rr]each(At)?\(|LimitReached\{|\bkey :?= "|\bmaxSessions = `)

// notedIn returns such lines of a service.
func notedIn(t *testing.T, service string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(service, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "config.go" {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			if notes.MatchString(line) {
				text.WriteString(line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// number reports whether a key of a configuration is a whole number and no time.
func number(config any, key string) bool {
	v := reflect.Indirect(reflect.ValueOf(config))
	for part := range strings.SplitSeq(key, ".") {
		i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			return name == part
		})
		if i < 0 {
			return false
		}
		if v = v.FieldByIndex(reflect.VisibleFields(v.Type())[i].Index); v.Kind() == reflect.Pointer {
			v = reflect.Indirect(v)
		}
		if v.Kind() != reflect.Struct {
			break
		}
	}
	return v.IsValid() && (v.CanInt() || v.CanUint()) && v.Type() != reflect.TypeFor[time.Duration]()
}
