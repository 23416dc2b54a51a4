import json
import sys
import time
import weft

position = None
while True:
    try:
        with weft.connect(sys.argv[1]) as controller:
            for event in controller.events("hosts", "southbound.SwitchChanged", position=position):
                print(json.dumps(event), flush=True)  # null: forget what was told before
                position = event and event["position"]
    except weft.Disconnected:
        time.sleep(1)
    except weft.Error as e:
        if e.final:
            raise
        time.sleep(1)
