package flow

import "testing"

func TestParseHybrid(t *testing.T) {
	for text, want := range map[string]string{
		"hybrid": "hybrid",
		"hybrid access=3,4 internal=101-199 tunnel=200-299": "hybrid access=3,4 internal=101-199 tunnel=200-299",
		"hybrid access=3 name=pe1":                          "hybrid name=pe1 access=3",
		" hybrid  tunnel=7 access=3-3 ":                     "hybrid access=3 tunnel=7",
	} {
		h, err := ParseHybrid(text)
		if err != nil || h == nil || h.String() != want {
			t.Errorf("%q: %v, %v, want %q", text, h, err, want)
		}
	}
	for _, text := range []string{"", "s1", "hybrids", "a hybrid"} {
		if h, err := ParseHybrid(text); h != nil || err != nil {
			t.Errorf("%q: %v, %v: not a hybrid node", text, h, err)
		}
	}
	for _, text := range []string{
		"hybrid access", "hybrid access=", "hybrid access=0", "hybrid access=x", "hybrid access=3-2", "hybrid access=-2",
		"hybrid access=1,,2", "hybrid access=4294967294", "hybrid access=1 access=2", "hybrid core=1", "hybrid name= access=1", "hybrid access=1-5 tunnel=5",
	} {
		h, err := ParseHybrid(text)
		if err == nil || h == nil || h.Role(1) != RoleUnsettled {
			t.Errorf("%q: %v, %v: want an error, and a node without lists", text, h, err)
		}
	}
}

func TestHybridRole(t *testing.T) {
	h, err := ParseHybrid("hybrid access=3,4 internal=101-103 tunnel=200-299")
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[Port]PortRole{1: RoleUnsettled, 3: RoleAccess, 4: RoleAccess, 5: RoleUnsettled,
		100: RoleUnsettled, 101: RoleInternal, 103: RoleInternal, 104: RoleUnsettled, 250: RoleTunnel, PortLocal: RoleUnsettled} {
		if r := h.Role(port); r != want {
			t.Errorf("port %d is %v, want %v", port, r, want)
		}
	}
}
