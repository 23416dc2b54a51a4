package services_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// harmless are the keys that hold text and name neither a program nor a file.
var harmless = []string{
	"southbound.identities", "southbound.switches", "southbound.elsewhere", "southbound.instance",
	"intake.identities", "intake.switches", "intake.elsewhere",
	"paths.partition", "paths.switches", "paths.elsewhere",
	"discovery.key", "discovery.link_ports", "discovery.new_links", "discovery.allow", "discovery.hybrid", "nodes.agents",
	"hosts.gateways", "hosts.probe_mac", "hosts.bindings.mac", "hosts.bindings.ports", "hosts.bindings.ips", "hosts.ports.port", "hosts.router_ports",
	"balancer.mac_prefix", "router.mac_prefix", "nat.mac_prefix",
	"firewall.rules.id", "firewall.rules.match", "firewall.rules.action", "firewall.rules.dpid", "firewall.rules.tenant", "firewall.rules.comment",
	"forwarding.mode", "forwarding.subnets.gateway",
	"gateway.token", "gateway.users", "ryu.users", "scp.nrf", "scp.nrf_name", "scp.address", "scp.resolver",
}

// TestKeysThatNameFiles: every key that holds text is either marked as decided
// at start, or known to name no program and no file. A new key fails here until
// somebody has thought about it.
func TestKeysThatNameFiles(t *testing.T) {
	left := slices.Clone(harmless)
	for _, spec := range services.All(gateway.Process{}) {
		if spec.Config == nil {
			continue
		}
		texts(reflect.TypeOf(spec.Config), spec.Name, "", func(key, tag string) {
			listed := slices.Contains(harmless, key)
			switch {
			case tag == "" && !listed:
				t.Errorf(`%s: it holds text; give it the tag start:"true" if it names a program, a file or a directory, start:"file" if it holds addresses to listen at, or add it to harmless`, key)
			case tag != "" && listed:
				t.Errorf("%s: it has the tag start:%q and is in harmless", key, tag)
			case tag != "" && tag != "true" && tag != "file":
				t.Errorf("%s: start:%q; want true or file", key, tag)
			case tag == "file" && !strings.HasSuffix(key, "listen"):
				t.Errorf("%s: only keys with addresses to listen at may change while the controller runs", key)
			}
			left = slices.DeleteFunc(left, func(k string) bool { return k == key })
		})
	}
	if len(left) > 0 {
		t.Errorf("harmless lists keys that no service has, or that hold no text: %v", left)
	}
}

// texts calls f for every key that holds text, with its tag start or that of a
// key above it.
func texts(t reflect.Type, path, tag string, f func(key, tag string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
	case t.Kind() == reflect.String || t.Kind() == reflect.Interface:
		f(path, tag)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			own := tag
			if s := field.Tag.Get("start"); s != "" {
				own = s
			}
			switch {
			case !field.IsExported() || name == "-":
			case options == "inline":
				texts(field.Type, path, own, f)
			case name == "":
				texts(field.Type, path+"."+strings.ToLower(field.Name), own, f)
			default:
				texts(field.Type, path+"."+name, own, f)
			}
		}
	}
}
