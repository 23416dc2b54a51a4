package cni

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	good := `{"cniVersion": "1.1.0", "name": "core5g", "type": "weft-cni", "controllers": ["tcp:10.0.0.1:6653", "ssl:[fd00::1]:6653"], "peers": ["10.0.0.2"],
		"runtimeConfig": {"ips": ["10.0.9.1/24", "fd00::1/64"]}}`
	c, err := parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if c.Bridge != "weft0" || c.MTU != 1450 || c.VNI != 0x5745 || len(c.addresses) != 2 {
		t.Errorf("%+v", c)
	}
	for _, x := range []struct{ text, want string }{
		{`{"name": "n"}`, "controllers: missing"},
		{`{"name": "n", "controllers": ["10.0.0.1"]}`, `controllers: "10.0.0.1"`},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1 -- del-br x"]}`, "controllers:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "bridge": "weft0 -- emer-reset"}`, "bridge:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "ovsdb": "--no-wait"}`, "ovsdb:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "datapath": "dpdk"}`, "datapath:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "peers": ["node-2"]}`, "peers:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "vni": 16777216}`, "vni:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "mtu": 100}`, "mtu:"},
		{`{"name": "n", "controllers": ["tcp:10.0.0.1:6653"], "runtimeConfig": {"ips": ["10.0.0.5"]}}`, "ips:"},
		{`{"name": `, "cannot be read"},
	} {
		if _, err := parse([]byte(x.text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.text, err, x.want)
		}
	}
}

// Known keys that are misspelt are refused where the network is used anew; others may be the
// runtime's, and do not keep an attachment from being removed.
func TestUnknownKeys(t *testing.T) {
	with := func(key string) []byte {
		return []byte(`{"cniVersion": "1.1.0", "name": "n", "type": "weft-cni", "controllers": ["tcp:10.0.0.1:6653"], ` + key + `: {}}`)
	}
	for key, meant := range map[string]string{`"controler"`: "controllers", `"peer"`: "peers", `"bridg"`: "bridge", `"mut"`: "mtu", `"runtimConfig"`: "runtimeConfig"} {
		if _, err := parseNew(with(key)); err == nil || !strings.Contains(err.Error(), "unknown key "+key+"; did you mean "+meant+"?") {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := parse(with(key)); err != nil {
			t.Errorf("%s, removed: %v", key, err)
		}
	}
	for _, key := range []string{`"cni.dev/attachments"`, `"io.kubernetes.cri"`, `"args"`, `"runtimeConfig"`, `"kubernetes"`, `"policy"`, `"log_level"`, `"nodename"`} {
		if _, err := parseNew(with(key)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestNames: names are the same whenever they are asked for, fit into 15 octets, and differ
// for what differs; what the runtime says of a pod cannot leave its quotes.
func TestNames(t *testing.T) {
	a, b := attach("n", "c1", "eth0"), attach("n", "c1", "eth1")
	if a != attach("n", "c1", "eth0") || a.bridge == b.bridge || a == attach("nc1", "", "eth0") {
		t.Errorf("%+v %+v", a, b)
	}
	for _, name := range []string{a.bridge, a.host, a.up, a.down} {
		if !ifaceName.MatchString(name) {
			t.Errorf("%q", name)
		}
	}
	first := functionID("n", "core/amf-0", "eth0")
	if again := functionID("n", "core/amf-0", "eth0"); again != first || first == functionID("n", "core/amf-1", "eth0") {
		t.Error("datapath identifiers")
	}
	for _, x := range []struct{ args, want string }{
		{"", "c1"}, {"IgnoreUnknown=1;K8S_POD_NAMESPACE=core;K8S_POD_NAME=amf-0", "core/amf-0"}, {`K8S_POD_NAME=a" -- emer-reset`, "/a__--_emer-reset"},
	} {
		if got := podName(x.args, "c1"); got != x.want {
			t.Errorf("%q: %q, want %q", x.args, got, x.want)
		}
	}
	if quote(`a"b\c`) != `"a\"b\\c"` {
		t.Error(quote(`a"b\c`))
	}
}
