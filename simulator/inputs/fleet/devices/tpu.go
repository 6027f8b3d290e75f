package devices

import (
	"fmt"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
)

// tpuNode is a host with four chips of TPU v5p, 2x2x1 of its slice's cube. Its driver publishes no coordinates.
func tpuNode(machine Machine) []driven {
	const chips = 4
	published := driven{driver: driverTPU}
	for i := range int64(chips) {
		published.devices = append(published.devices, resourcev1.Device{
			Name: strconv.FormatInt(i, 10),
			Attributes: attributes{
				"accelerator": text("tpu-v5p-slice"),
				"brand":       text("Google"),
				"chipCount":   number(chips),
				"index":       number(i),
				"topology":    text("4x4x4"),
				"tpuGen":      text("v5p"),
				"uuid":        text(fmt.Sprintf("tpu-%s-%d", machine.Name, i)),
			},
		})
	}
	return []driven{published}
}
