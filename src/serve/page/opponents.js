// The available opponents: agents and networks.

import { element } from "./dom.js";
import { message, t } from "./messages.js";

/** The server's capabilities, from `/v1/agents`. */
export const server = { agents: [], networks: [], limits: {} };

const words = {
  mcts: message("A search"),
  policy: message("First choice"),
  value: message("One move ahead"),
  human: message("Like people"),
  diffusion: message("Imagines the future"),
  world: message("A search in imagination"),
};

/** Returns the players: every agent with its own network, and additional networks with suitable agents. */
function players() {
  const byName = new Map(server.networks.map((network) => [network.name, network]));
  const own = server.agents.map(({ name, network, ratings }) => ({
    agent: name,
    network,
    ratings,
    isUsual: true,
  }));
  const others = server.networks.slice(1).filter(({ name, family }) => name !== "human" && family !== "world");
  for (const { name, has_value, ratings } of others) {
    own.push({ agent: "policy", network: name, ratings });
    if (has_value) own.push({ agent: "mcts", network: name, ratings });
  }
  return own.map((player) => ({ ...player, title: byName.get(player.network)?.title ?? player.network }));
}

/** Returns the player that uses an agent with its own network. */
export const usualPlayer = (agent) => players().find((it) => it.agent === agent && it.isUsual);

/** Fills a list with the players; the agent `chosen` comes first. `none`, if given, is the entry for no player. */
export function listPlayers(select, chosen, none) {
  const options = players().map((player, index) => {
    const text = `${t(words[player.agent])} (${player.title})`;
    const selected = player.agent === chosen && player.isUsual;
    return element("option", { value: index, textContent: text, selected });
  });
  if (none) options.unshift(element("option", { value: "", textContent: none }));
  select.replaceChildren(...options);
}

/** Returns the player chosen in a list, if any. */
export const chosenPlayer = (select) => (select.value === "" ? undefined : players()[select.value]);

/** Fills a list with networks. */
export function listNetworks(select, suits, chosen) {
  const networks = server.networks.filter(suits);
  select.replaceChildren(
    ...networks.map(({ name, title }) => {
      const text = name === title ? name : `${name} (${title})`;
      return element("option", { value: name, textContent: text, selected: name === chosen });
    }),
  );
}

/** Returns the network with this name. */
export const network = (name) => server.networks.find((it) => it.name === name);

/** Returns the fields of a request that name the player. */
export function asked(player, elo) {
  const request = { agent: player.agent };
  if (!player.isUsual) request.network = player.network;
  if (player.ratings && elo) request.elo = Number(elo);
  return request;
}

/** Returns whether the player searches a tree, so that nodes limit it. */
export const searches = ({ agent }) => agent === "mcts" || agent === "world";
