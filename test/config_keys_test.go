package test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/balancer"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/services/heartbeat"
	"github.com/weft-sdn/weft/services/nat"
	"github.com/weft-sdn/weft/services/qos"
	"github.com/weft-sdn/weft/services/tenants"
	"github.com/weft-sdn/weft/wefttest"
)

// otherValues are the sections of services, in which a key is not as by default,
// for keys of which no value can be made up.
func otherValues() map[string]string {
	const tls = "{listen: [\"tls:127.0.0.1:6653\"], certificate: a, key: b, authority: c}"
	return map[string]string{
		"southbound.listen": "{listen: [\"tcp:127.0.0.1:6654\"]}", "southbound.certificate": tls, "southbound.key": tls, "southbound.authority": tls,
		"southbound.identities": "{identities: {switch1: [\"1\"]}}", "southbound.switches": "{switches: [\"1-8\"]}", "southbound.elsewhere": "{elsewhere: {west: [\"9\"]}}",
		"southbound.standby_listen": "{standby_listen: [\"tcp:127.0.0.1:6655\"]}", "southbound.instance": "{instance: southbound-2}",
		"paths.partition": "{partition: east}", "paths.switches": "{partition: east, switches: [\"1-8\"]}", "paths.elsewhere": "{partition: east, elsewhere: {west: [\"9\"]}}",
		"intake.listen": "{listen: [\"tcp:127.0.0.1:6664\"]}", "intake.certificate": tls, "intake.key": tls, "intake.authority": tls,
		"intake.identities": "{identities: {switch1: [\"1\"]}}", "intake.switches": "{switches: [\"1-8\"]}", "intake.elsewhere": "{elsewhere: {west: [\"9\"]}}",
		"discovery.key": "{key: \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}", "hosts.gateways": "{gateways: [10.0.0.254]}", "hosts.probe_mac": "{probe_mac: \"02:00:00:00:00:09\"}",
		"discovery.link_ports": "{link_ports: [\"0000000000000001:*\"]}", "discovery.new_links": "{new_links: hold}", "discovery.hybrid": "{hybrid: [\"000000000000000f access=3\"]}", "discovery.allow": "{allow: [\"1:2 2:2\"]}",
		"nodes.agents":   "{agents: [\"site1 00000000000000a?\"]}",
		"hosts.bindings": "{bindings: [{mac: \"02:00:00:00:00:01\", ports: [1/1]}]}", "hosts.ports": "{ports: [{port: 1/1, max_hosts: 4}]}", "hosts.router_ports": "{router_ports: [1/1]}",
		"firewall.rules": "{rules: [{id: web, action: allow}]}",
		"scp.nrf":        "{nrf: \"http://10.0.0.1:7777\", address: 10.0.0.9}", "scp.address": "{nrf: \"http://10.0.0.1:7777\", address: 10.0.0.9}", "scp.nrf_name": "{nrf_name: nrf.example.org}", "scp.listen": "{nrf: \"http://10.0.0.1:7777\", listen: \"10.0.0.2:7777\"}",
		"scp.vips": "{vips: [10.0.0.192/26]}", "scp.registrars": "{registrars: [10.0.0.7/32]}",
		"scp.names": "{names: {udm.example.org: [10.0.4.1]}}", "scp.resolver": "{resolver: \"10.0.0.53:53\"}",
		"chain.last_tag": "{last_tag: 4000}", "balancer.mac_prefix": "{mac_prefix: \"06:aa:bb\"}", "router.mac_prefix": "{mac_prefix: \"06:aa:bb\"}", "nat.mac_prefix": "{mac_prefix: \"06:aa:bb\"}",
		"forwarding.mode": "{mode: proactive}", "forwarding.subnets": "{subnets: [{gateway: 10.0.1.1/24}]}", "forwarding.router_mac": "{router_mac: \"02:00:00:00:00:09\"}",
		"qos.ovsdb": "{ovsdb: \"tcp:{address}:6640\"}", "qos.ovsdb_switches": "{ovsdb_switches: {\"1\": \"unix:/run/db\"}}", "qos.vsctl": "{vsctl: vsctl}", "qos.vsctl_options": "{vsctl_options: [--dry-run]}",
		"ryu.listen": "{listen: \"127.0.0.1:8081\"}", "gateway.listen": "{listen: \"127.0.0.1:8182\"}",
		"gateway.certificate": "{certificate: a, key: b}", "gateway.key": "{certificate: a, key: b}", "gateway.client_authority": "{certificate: a, key: b, client_authority: c}",
		"gateway.token": "{token: 0123456789abcdef0123456789abcdef}", "gateway.token_file": "{token_file: f}",
		"gateway.users": "{users: {\"1007\": operate}}", "ryu.users": "{users: [\"1007\"]}",
	}
}

// TestConfigKeys: for every key of every service the dry run says whether a
// running service takes it over or is started again for it, and a running
// controller does as the dry run says: what is live restarts nothing. That it
// takes effect then is the services' own TestLive.
func TestConfigKeys(t *testing.T) {
	t.Parallel()
	specs := services.All(gateway.Process{})
	before := onePlan(t, specs)
	live, again := map[string]string{}, 0
	for _, spec := range specs {
		for _, key := range wefttest.Keys(spec.Config) {
			if startTag(spec, key) == "true" {
				continue // nobody may change it
			}
			name := spec.Name + "." + key
			text, change := changed(t, before, specs, spec, key)
			if change == nil {
				t.Errorf("%s: no other value is known that is right; add one to otherValues", name)
				continue
			}
			declared := slices.ContainsFunc(spec.Live, func(l string) bool { return l == "*" || l == key || strings.HasPrefix(key, l+".") })
			switch {
			case declared && change.Effect == config.EffectLive:
				live[name] = text
			case !declared && change.Effect == config.EffectRestart:
				again++
			default:
				t.Errorf("%s: live by its Spec: %v; the dry run says %s", name, declared, change.Effect)
			}
		}
	}
	t.Logf("%d keys are live, %d take a restart of their service", len(live), again)
	for _, service := range []string{"balancer", "qos", "tenants", "heartbeat"} {
		i := slices.IndexFunc(specs, func(s weft.Spec) bool { return s.Name == service })
		for _, key := range wefttest.Keys(specs[i].Config) {
			if live[service+"."+key] == "" && startTag(specs[i], key) == "" {
				t.Errorf("%s.%s is not live", service, key)
			}
		}
	}

	// All of them say where switches connect, or they would change that, too.
	address := freeAddress(t)
	listen := "listen: [\"tcp:" + address + "\"]"
	with := func(name, text string) string {
		if strings.HasPrefix(name, "southbound.") {
			return strings.Replace(text, "{", "{"+listen+", ", 1)
		}
		return "southbound: {" + listen + "}\n" + text
	}
	c := startConfigured(t, wefttest.NewStore(), address, with("", ""), balancer.Spec(), nat.Spec(), qos.Spec(), tenants.Spec(), heartbeat.Spec())
	var epochs map[string]uint64
	eventually(t, "all services that run have told of themselves", func() bool {
		epochs = c.epochs()
		return !slices.ContainsFunc(c.known, func(s weft.Spec) bool { return epochs[s.Name] == 0 })
	})
	for round := 0; ; round++ {
		// One key of every service at a time.
		text, names := "", []string{}
		for _, spec := range specs {
			keys := slices.DeleteFunc(wefttest.Keys(spec.Config), func(key string) bool { return live[spec.Name+"."+key] == "" })
			switch {
			case epochs[spec.Name] == 0: // it does not run here
			case round < len(keys):
				names = append(names, spec.Name+"."+keys[round])
				text += live[spec.Name+"."+keys[round]]
				if spec.Name == "southbound" {
					text = with(names[len(names)-1], text)
				}
			case spec.Name == "southbound":
				text += with("", "")
			}
		}
		if len(names) == 0 {
			break
		}
		m, err := c.node.ApplyConfig(context.Background(), &api.ApplyConfigRequest{Text: text, DryRun: true})
		if err != nil || len(m.Changes) < len(names) || slices.ContainsFunc(m.Changes, func(x *api.ConfigChange) bool { return x.Effect != config.EffectLive }) {
			t.Errorf("%v: dry run: %v, %v", names, m, err)
		}
		if m := c.mustApply(text); m.State != "in-force" {
			t.Errorf("%v: %v", names, m)
		}
		if list := c.restarted(epochs); len(list) != 0 {
			t.Fatalf("%v: started again: %v", names, list)
		}
	}
	// And one that is not live: the dry run tells, and so it is.
	text := with("nat", "nat: "+otherValues()["nat.mac_prefix"])
	m, err := c.node.ApplyConfig(context.Background(), &api.ApplyConfigRequest{Text: text, DryRun: true})
	if err != nil || !slices.ContainsFunc(m.Changes, func(x *api.ConfigChange) bool { return x.Key == "mac_prefix" && x.Effect == config.EffectRestart }) {
		t.Errorf("dry run: %v, %v", m, err)
	}
	epochs = c.epochs()
	c.mustApply(text)
	eventually(t, "nat is started again", func() bool { return fmt.Sprint(c.restarted(epochs)) == "[nat]" })
}

// startTag returns the tag start of a key, which says that it is decided at start.
func startTag(spec weft.Spec, key string) string {
	for f := range reflect.TypeOf(spec.Config).Elem().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name == key {
			return f.Tag.Get("start")
		}
	}
	return ""
}

// onePlan is a plan of one worker with all services.
func onePlan(t *testing.T, specs []weft.Spec) *plan.Plan {
	t.Helper()
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	p, err := plan.Parse("all", []byte("name: all\nworkers:\n  all: {services: ["+strings.Join(names, ", ")+"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// changed returns a configuration in which a key is not as by default, and what
// the dry run says of it; nil if none is found.
func changed(t *testing.T, before *plan.Plan, specs []weft.Spec, spec weft.Spec, key string) (string, *api.ConfigChange) {
	t.Helper()
	var values []string
	for _, v := range candidates(valueOf(t, reflect.ValueOf(spec.Config).Elem(), key)) {
		for _, part := range slices.Backward(strings.Split(key, ".")) {
			v = "{" + part + ": " + v + "}"
		}
		values = append(values, v)
	}
	if v, ok := otherValues()[spec.Name+"."+key]; ok {
		values = []string{v}
	}
	for _, v := range values {
		text := spec.Name + ": " + v + "\n"
		doc, err := plan.ParseConfig("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		after := before.WithConfig(doc.Sections)
		list, err := config.Difference(before, after, specs)
		if err != nil {
			continue
		}
		for _, c := range list {
			if c.Section == spec.Name && (c.Key == key || strings.HasPrefix(c.Key, key)) {
				return text, c
			}
		}
	}
	return "", nil
}

// valueOf returns the field of a key.
func valueOf(t *testing.T, v reflect.Value, key string) reflect.Value {
	t.Helper()
	name, rest, nested := strings.Cut(key, ".")
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if tag != name {
			continue
		}
		if nested {
			return valueOf(t, v.Field(i), rest)
		}
		return v.Field(i)
	}
	t.Fatalf("no field for key %s in %v", key, v.Type())
	return v
}

// candidates returns values, as YAML, that are not the given one.
func candidates(v reflect.Value) (list []string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d := time.Duration(v.Int())
		for _, n := range []time.Duration{d + d/10, 2 * d, d / 2, d - d/10, time.Second, 100 * time.Millisecond, time.Minute} {
			list = append(list, n.String())
		}
	case v.Kind() == reflect.Bool:
		list = append(list, fmt.Sprint(!v.Bool()))
	case v.CanInt():
		for _, n := range []int64{v.Int() + 1, v.Int() - 1, 2 * v.Int(), v.Int() / 2, 1, 0} {
			list = append(list, fmt.Sprint(n))
		}
	case v.CanUint():
		for _, n := range []uint64{v.Uint() + 1, 2 * v.Uint(), v.Uint() / 2, 1} {
			list = append(list, fmt.Sprint(n))
		}
	case v.CanFloat():
		for _, n := range []float64{v.Float() + 1, v.Float() / 2, v.Float() + 0.1} {
			list = append(list, fmt.Sprint(n))
		}
	}
	return list
}
