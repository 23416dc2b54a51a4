package flow

import "testing"

func TestControllerText(t *testing.T) {
	for text, want := range map[string]Controller{
		"controller(id=1)":                                  {1, NoBuffer, ReasonAction},
		"controller(reason=no_match,id=65535)":              {65535, NoBuffer, ReasonNoMatch},
		"controller(reason=invalid_ttl,max_len=128,id=258)": {258, 128, ReasonInvalidTTL},
		"controller(max_len=0,id=0)":                        {0, 0, ReasonAction},
	} {
		a, err := ParseAction(text)
		if err != nil || a != want.Action() || a.String() != text {
			t.Errorf("%s: %v %v", text, a, err)
		}
		if got, ok := ParseController(a); !ok || got != want {
			t.Errorf("%s: %+v %v", text, got, ok)
		}
		if list, err := ParseActions("output:1," + text + ",output:2"); err != nil || len(list) != 3 || list[1] != a {
			t.Errorf("%s in a list: %v %v", text, list, err)
		}
	}
	for _, text := range []string{"controller(", "controller()", "controller(id=65536)", "controller(id=-1)", "controller(reason=why,id=1)", "controller(id=1,pause)", "controller(1)"} {
		if a, err := ParseAction(text); err == nil {
			t.Errorf("%s is read as %v", text, a)
		}
	}
	if a := ToController(0, ReasonNoMatch); a != Output(PortController) {
		t.Errorf("number 0 is %v", a)
	}
	if a := ToController(7, ReasonNoMatch); a.String() != "controller(reason=no_match,id=7)" {
		t.Errorf("number 7 is %v", a)
	}
}

// FuzzController reads octets as a controller action: what is read is the same
// when it is written, as octets and as text.
func FuzzController(f *testing.F) {
	for _, c := range []Controller{{1, NoBuffer, ReasonAction}, {0xffff, 128, ReasonInvalidTTL}, {}} {
		f.Add(c.Action().Data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		a := Action{Kind: ActionExperimenter, Arg: Nicira, Data: data}
		c, ok := ParseController(a)
		if read, err := ParseAction(a.String()); err != nil || read != a {
			t.Fatalf("%v is read as %v (%v)", a, read, err)
		}
		if ok && c.Action() != a {
			t.Fatalf("%x becomes %x", a.Data, c.Action().Data)
		}
	})
}
