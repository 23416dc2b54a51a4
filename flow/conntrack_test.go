package flow

import (
	"testing"
)

func TestConntrackText(t *testing.T) {
	for _, text := range []string{
		"ct()", "ct(commit)", "ct(commit,force,table=0,zone=65535)", "ct(table=3,nat)",
		"ct(commit,nat(src))", "ct(commit,nat(dst=10.0.0.5))", "ct(commit,nat(src=10.0.0.1-10.0.0.9:1-2,hash))",
		"ct(commit,nat(src=[fd00::1]-[fd00::2]:80,persistent,random))", "ct(commit,nat(src=fd00::1))",
	} {
		a, err := ParseAction(text)
		if err != nil || a.String() != text {
			t.Errorf("%s: %v %v", text, a, err)
		}
		if list, err := ParseActions("output:1," + text + ",output:2"); err != nil || len(list) != 3 || list[1] != a {
			t.Errorf("%s in a list: %v %v", text, list, err)
		}
	}
	for _, text := range []string{
		"ct", "ct(", "ct(force)", "ct(table=255)", "ct(zone=65536)", "ct(nat(src=10.0.0.1))", "ct(commit,nat())", "ct(commit,nat(src,dst))",
		"ct(commit,nat(src=10.0.0.2-10.0.0.1))", "ct(commit,nat(src=10.0.0.1-fd00::1))", "ct(commit,nat(src=10.0.0.1:0))", "ct(commit,nat(src=10.0.0.1:9-8))",
		"ct(commit,nat(hash))", "ct(commit,nat(src,hash,random))", "ct(nonsense)", "ct(commit,nat(src=::ffff:10.0.0.1))", "ct(commit,nat(src=fe80::1%eth0))",
	} {
		if a, err := ParseAction(text); err == nil {
			t.Errorf("%s is read as %v", text, a)
		}
	}
	for text, want := range map[string]string{
		"ct_state=+trk+new-snat": "ct_state=+new+trk-snat", "ct_state=0x20/0x20": "ct_state=+trk", "ct_state=-trk,ct_zone=5,ct_mark=0x1/0x3": "ct_state=-trk,ct_zone=5,ct_mark=0x1/0x3",
	} {
		if m, err := ParseMatchString(text); err != nil || m.String() != want {
			t.Errorf("%s: %v %v", text, m, err)
		}
	}
	for _, text := range []string{"ct_state=+foo", "ct_state=+trk-trk", "ct_state=+", "ct_state=trk", "ct_zone=65536", "ct_zone=1/1"} {
		if m, err := ParseMatchString(text); err == nil {
			t.Errorf("%s is read as %v", text, m)
		}
	}
}

// FuzzCT reads octets as a ct action: what is read is the same when it is
// written, as octets and as text.
func FuzzCT(f *testing.F) {
	for _, text := range []string{"ct(commit)", "ct(table=3,nat)", "ct(commit,zone=7,nat(src=10.0.0.1-10.0.0.9:1-2,hash))", "ct(commit,nat(dst=[fd00::1]:80))"} {
		a, err := ParseAction(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		a := Action{Kind: ActionExperimenter, Arg: Nicira, Data: data}
		c, ok := ParseCT(a)
		if !ok {
			return
		}
		if again := c.Action(); again != a {
			t.Fatalf("%x becomes %x", a.Data, again.Data)
		}
		if read, err := ParseAction(c.String()); err != nil || read != a {
			t.Fatalf("%v is read as %v (%v)", c, read, err)
		}
	})
}
