// The guided stories: what to look at, step by step. The last step of each is for changing it.

export type Step = { title: string; text: string; transport?: string; compare?: string | null; seek?: number; speed?: number; play?: boolean };
export type Story = { id: string; name: string; scenario: string; steps: Step[] };

const CROSS = `# Two flows that cross in the middle of nine nodes.
title = "Two crossing flows"
duration = "120 s"
warmup = "20 s"

[topology]
kind = "cross"                 # nodes 0 to 4 west to east; 5, 6, 2, 7, 8 south to north

[routing]
protocol = "aodv"

[[flow]]
from = 0
to = 4

[[flow]]
from = 5
to = 8
`;

const CHAIN = `# One bulk transfer over a chain of 802.11 hops.
title = "One bulk transfer over a chain"
duration = "120 s"
warmup = "20 s"

[topology]
kind = "chain"                 # nodes 0, 1, ... from west to east, 200 m apart
hops = 7

[routing]
protocol = "aodv"

[[flow]]
transport = "newreno"
`;

export const STORIES: Story[] = [
  {
    id: "collapse",
    name: "Why TCP collapses",
    scenario: CHAIN,
    steps: [
      {
        title: "A window is a burst",
        transport: "newreno",
        compare: null,
        seek: 4,
        speed: 2,
        play: true,
        text: "NewReno sends as much as its window allows, at once. Over one hop that is right. Over seven hops the segments of one window are on the air at several nodes at the same time. Watch the solid rings: data frames, slowed down 500 times.",
      },
      {
        title: "A hidden terminal",
        seek: 6,
        speed: 2,
        play: true,
        text: "A node senses others up to 550 m, so it does not hear a sender three hops away. But its frames still disturb the receiver in between, which hears both. Each cross is a frame that was lost that way; RTS and CTS do not help, for the disturber is too far away to decode the CTS.",
      },
      {
        title: "What it costs",
        seek: 60,
        speed: 8,
        play: true,
        text: "The link layer tries again, seven times, and then gives the packet up. The marks under the line of time are links given up, routes lost, and timeouts. Look at the plot of goodput: it falls to nothing and comes back, again and again.",
      },
      {
        title: "Now change it",
        text: "Set the hops to 2: the window that chokes seven hops suits two. Choose tcp-ap, then quiet-train. Set the speed to single frames and step through a collision.",
      },
    ],
  },
  {
    id: "routes",
    name: "False route failures",
    scenario: CHAIN.replace('[[flow]]\ntransport = "newreno"', '[[flow]]\ntransport = "newreno"\n\n[[flow]]\ntransport = "newreno"'),
    steps: [
      {
        title: "Nobody moves",
        transport: "newreno",
        compare: null,
        seek: 1,
        speed: 4,
        play: true,
        text: "These nodes stand still, so that no link ever breaks. AODV asks for a route with a broadcast that every node repeats (the dashed and dotted rings), and the answer comes back hop by hop.",
      },
      {
        title: "A collision looks like a break",
        seek: 30,
        speed: 7,
        play: true,
        text: "When a frame has failed seven times the link layer can only say: my neighbour is gone. That is not true, but routing must believe it, tells the source, and searches again. Go from event to event with the buttons under the line of time.",
      },
      {
        title: "Group by group",
        seek: 60,
        speed: 8,
        play: true,
        text: "The bars in the line of time come in groups: a link given up, a route lost, a search that itself collides with the data, a timeout. What is lost then is not a packet but a second.",
      },
      {
        title: "Now change it",
        text: "Choose static under Routing: as many collisions, but no false failures, and twice the goodput. Then take the scenario's routing again and choose tcp-ap as transport A: collisions remain, but the link layer hardly ever gives a neighbour up.",
      },
    ],
  },
  {
    id: "pacing",
    name: "Pacing",
    scenario: CROSS,
    steps: [
      {
        title: "The same mesh twice",
        transport: "newreno",
        compare: "tcp-ap",
        seek: 20,
        speed: 2,
        play: true,
        text: "A has NewReno, B has TCP-AP, with one seed. TCP-AP measures how long a packet needs over four hops, the distance at which two transmissions no longer disturb each other, and leaves that long between two segments, and more when the RTT varies.",
      },
      {
        title: "Who gets the channel",
        seek: 60,
        speed: 8,
        play: true,
        text: "Two flows cross in node 2. Look at Jain's index of two-second windows: 1 is an equal share, 0.5 is one flow alone. Under NewReno the flows take turns in starving each other; paced flows share.",
      },
      {
        title: "Quiet trains",
        transport: "tcp-ap",
        compare: "quiet-train",
        seek: 60,
        speed: 8,
        play: true,
        text: "Quiet trains (B) send a few segments and are then silent, so that they have left the way before the next ones come and acknowledgements find a free channel. Compare collisions and links given up with those of TCP-AP (A), and both with what NewReno had.",
      },
      {
        title: "Now change it",
        text: "Let quiet trains meet NewReno, add flows, or paste a scenario of your own under \"The whole scenario\".",
      },
    ],
  },
];
