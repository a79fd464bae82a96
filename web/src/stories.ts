// The guided stories: what to look at, step by step. The last step of each is for changing it.
import * as scenes from "./scenes";
import type { Scene } from "./scenes";

/** A step plays its scene, if it is played, with this speed; places of SPEEDS. */
export type Step = { title: string; text: string; transport?: string; compare?: string | null; scene: Scene; speed: number; play: boolean };
/** Of real time: 1/500, 1/100, 1/20, 1/5, and real time. */
const [SLOW, HUNDREDTH, TWENTIETH, FIFTH, REAL] = [2, 3, 4, 5, 6];
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
        scene: scenes.burst,
        speed: SLOW,
        play: true,
        text: "NewReno sends as much as its window allows. Over one hop that is right. Over seven hops segments of one window are on the air at several nodes at the same time, in each other's way. Watch the broad rings: data frames, slowed down 500 times.",
      },
      {
        title: "A hidden terminal",
        scene: scenes.hidden,
        speed: SLOW,
        play: true,
        text: "A node senses others up to 550 m, so it does not hear a sender three hops away. But that sender's frames still disturb the receiver in between, which hears both. The cross is a frame that was lost that way; RTS and CTS do not help, for the disturber is too far away to decode the CTS.",
      },
      {
        title: "What it costs",
        scene: scenes.backAgain,
        speed: REAL,
        play: true,
        text: "The link layer tries again, seven times, and then gives the packet up. The marks under the line of time are links given up, routes lost, and timeouts. Look at the plot of goodput: it falls to nothing for seconds and comes back, again and again.",
      },
      {
        title: "Now change it",
        scene: scenes.hidden,
        speed: 0,
        play: false,
        text: "Set the hops to 2: the window that chokes seven hops suits two. Choose tcp-ap, then quiet-train: more goodput each time. Or step through the collision that is shown here, frame by frame.",
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
        scene: scenes.search,
        speed: HUNDREDTH,
        play: true,
        text: "These nodes stand still, so that no link ever breaks. AODV asks for a route with a broadcast that every node repeats but the last (the rings of dashes and dots), and the answer comes back hop by hop.",
      },
      {
        title: "A collision looks like a break",
        scene: scenes.giveUp,
        speed: HUNDREDTH,
        play: true,
        text: "When a frame has failed seven times the link layer can only say: my neighbour is gone. That is not true, but routing must believe it: it says so in an error message, and a source searches again. Go from event to event with the buttons under the line of time.",
      },
      {
        title: "Group by group",
        scene: scenes.group,
        speed: FIFTH,
        play: true,
        text: "The bars in the line of time come in groups: a link given up, a route lost, a search that does not get through either, a timeout. What is lost then is not a packet but a second, or more.",
      },
      {
        title: "Now change it",
        scene: scenes.giveUp,
        speed: HUNDREDTH,
        play: false,
        text: "Choose static under Routing: even more collisions, but no false failures, and more than twice the goodput. Then take the scenario's routing again and choose tcp-ap as transport A: collisions remain, but the link layer hardly ever gives a neighbour up.",
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
        scene: scenes.bursts,
        speed: TWENTIETH,
        play: true,
        text: "A has NewReno, B has TCP-AP, with one seed. TCP-AP measures how long a packet needs over four hops, the distance at which two transmissions no longer disturb each other, and leaves that long between two segments, and more when the RTT varies. NewReno sends several at once.",
      },
      {
        title: "Who gets the channel",
        scene: scenes.turns,
        speed: REAL,
        play: true,
        text: "Two flows cross in node 2. Look at Jain's index of two-second windows: 1 is an equal share, 0.5 is one flow alone. Under NewReno the flows take turns in starving each other; paced flows share.",
      },
      {
        title: "Quiet trains",
        transport: "tcp-ap",
        compare: "quiet-train",
        scene: scenes.train,
        speed: FIFTH,
        play: true,
        text: "Quiet trains (B) are paced, too, but a whole train of segments has one acknowledgement, so that hardly anything comes against them. Compare collisions and links given up with those of TCP-AP (A), and both with what NewReno had.",
      },
      {
        title: "Now change it",
        scene: scenes.train,
        speed: FIFTH,
        play: false,
        text: "Let quiet trains meet NewReno, add flows, or paste a scenario of your own under \"The whole scenario\".",
      },
    ],
  },
];
